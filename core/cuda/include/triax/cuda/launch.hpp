// How work is laid out over blocks and threads: plain functions of sizes, so that a shape gives the same launch always.
//
// Threads: values, any thread; Share also in kernels. Ownership, blocking: none. Errors: none.
// A grid never has more blocks than fits, so every kernel walks: `for (i = share.first; i < n; i += share.step)`, in 64
// bits. Nothing here asks the GPU for its size: results must not depend on it.
#pragma once

#include <cstdint>

#include "triax/cuda/host_device.hpp"

namespace triax::cuda {

inline constexpr unsigned kThreads = 256;        // of every block
inline constexpr unsigned kMostBlocks = 1 << 16; // of a grid: more than any GPU runs at once

struct Grid {
  unsigned blocks = 1, threads = kThreads;
};

/// One thread for each of `count` things, as far as the blocks go. For 0 things no kernel may be launched.
TRIAX_HD constexpr Grid grid_of_elements(std::int64_t count) {
  const std::int64_t blocks = count / kThreads + (count % kThreads != 0 ? 1 : 0);
  return {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads};
}

/// One block for each of `count` rows, as far as the blocks go.
TRIAX_HD constexpr Grid grid_of_rows(std::int64_t count) {
  return {static_cast<unsigned>(count < kMostBlocks ? count : kMostBlocks), kThreads};
}

/// What one thread, or one block, takes: first, first + step, ...
struct Share {
  std::int64_t first, step;
};

TRIAX_HD constexpr Share share_of_thread(unsigned block, unsigned thread, unsigned blocks, unsigned threads) {
  return {static_cast<std::int64_t>(block) * threads + thread, static_cast<std::int64_t>(blocks) * threads};
}

#if defined(__CUDACC__)
/// Of the calling thread in a grid of one dimension.
__device__ inline Share my_share() {
  return share_of_thread(blockIdx.x, threadIdx.x, gridDim.x, blockDim.x);
}
#endif

/// `count` things cut into parts of equal length, the last one shorter: what sums are made of in two steps.
struct Parts {
  std::int64_t length = 1, count = 0;
};

/// Parts of at least `least`, and not more of them than `most`: decided by the shape alone.
TRIAX_HD constexpr Parts parts_of(std::int64_t count, std::int64_t least, std::int64_t most) {
  const std::int64_t share = count / most + (count % most != 0 ? 1 : 0);
  const std::int64_t length = share > least ? share : least;
  return {length, count / length + (count % length != 0 ? 1 : 0)};
}

} // namespace triax::cuda
