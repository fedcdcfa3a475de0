// SPDX-License-Identifier: Apache-2.0
// Sizes that all kernels of this set share.
//
// Threads: constants; also on the host.
#pragma once

#include "triax/cuda/launch.hpp"

namespace triax::kernels_fused {

inline constexpr unsigned kWarpSize = 32, kAllLanes = 0xFFFFFFFFu;
inline constexpr unsigned kBlockSize = cuda::kThreads; // of all kernels but the tiled ones of attention
/// Minimum of resident blocks per SM in `__launch_bounds__`: at most 128 registers for each of the 256
/// threads. Without it, nvcc aims at more blocks, and spills.
inline constexpr unsigned kMinBlocks = 2;

template <class T>
inline constexpr int kVec = static_cast<int>(16 / sizeof(T)); // elements per vector of 16 bytes

} // namespace triax::kernels_fused
