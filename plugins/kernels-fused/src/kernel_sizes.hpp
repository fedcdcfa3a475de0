// SPDX-License-Identifier: Apache-2.0
// Sizes that all kernels of this set share.
#pragma once

#include "triax/cuda/launch.hpp"

namespace triax::kernels_fused {

using cuda::ceil_div;
using cuda::kFullMask;
using cuda::kWarpSize;

inline constexpr unsigned kBlockSize = cuda::kBlockSize; // of all kernels but the tiled ones of attention
/// Minimum of resident blocks per SM in `__launch_bounds__`. Of 256 threads, 2 blocks leave 128 registers a thread, 3
/// leave 80, 4 leave 64. Without it, nvcc aims at more blocks, and spills.
inline constexpr unsigned kDefaultMinBlocks = 2;

template <class T>
inline constexpr int kVec = static_cast<int>(16 / sizeof(T)); // elements per vector of 16 bytes

} // namespace triax::kernels_fused
