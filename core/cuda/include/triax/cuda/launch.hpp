// SPDX-License-Identifier: Apache-2.0
// Launch configurations: pure functions of sizes, so that a shape always gives the same launch.
//
// Host threads: any. Kernels call grid_stride(). Ownership, blocking, errors: none.
// The number of blocks is limited, so a kernel that gets its grid from here loops with 64-bit indices:
// `for (i = stride.first; i < n; i += stride.step)`. No function queries the GPU: results must not depend on its size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "triax/cuda/host_device.hpp"

namespace triax::cuda {

inline constexpr unsigned kBlockSize = 256;        // threads of a block of these grids
inline constexpr unsigned kMaxBlocks = 1 << 16;    // of a grid: more than any GPU runs at once
inline constexpr unsigned kWarpSize = 32;          // lanes
inline constexpr unsigned kFullMask = 0xFFFFFFFFu; // all lanes of a warp

/// a / b, rounded up, of a >= 0 and b > 0.
TRIAX_HD constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// A one-dimensional grid.
struct Grid {
  unsigned blocks = 1, threads = kBlockSize;
  std::size_t shared_bytes = 0; // dynamic shared memory of a block; launch_kernel() also asks for more than 48 KiB
};

/// One thread per element, up to the largest grid. Launch no kernel if `count` is 0.
TRIAX_HD constexpr Grid grid_of_elements(std::int64_t count) {
  const std::int64_t blocks = ceil_div(count, kBlockSize);
  return {static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks), kBlockSize};
}

/// One block per item, up to the largest grid. Launch no kernel if `count` is 0.
TRIAX_HD constexpr Grid grid_of_blocks(std::int64_t count) {
  return {static_cast<unsigned>(count < kMaxBlocks ? count : kMaxBlocks), kBlockSize};
}

/// Elements (or items) of one thread, or one block: first, first + step, ...
struct GridStride {
  std::int64_t first, step;
};

/// Elements of a thread in a one-dimensional grid.
TRIAX_HD constexpr GridStride stride_of_thread(unsigned block, unsigned thread, unsigned blocks, unsigned threads) {
  return {static_cast<std::int64_t>(block) * threads + thread, static_cast<std::int64_t>(blocks) * threads};
}

#if defined(__CUDACC__)
/// Elements of the calling thread in a one-dimensional grid.
__device__ inline GridStride grid_stride() {
  return stride_of_thread(blockIdx.x, threadIdx.x, gridDim.x, blockDim.x);
}
#endif

/// `count` elements cut into parts of equal length, the last one shorter: for sums in two steps.
struct Parts {
  std::int64_t length = 1, count = 0;
};

/// Parts of at least `least` elements, and at most `most` parts: a function of the shape alone.
TRIAX_HD constexpr Parts parts_of(std::int64_t count, std::int64_t least, std::int64_t most) {
  const std::int64_t share = ceil_div(count, most);
  const std::int64_t length = share > least ? share : least;
  return {length, ceil_div(count, length)};
}

} // namespace triax::cuda
