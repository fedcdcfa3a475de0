// Launches of kernels on the host: blocks in any order, one after another, and the threads of a block as fibers that
// take turns in any order, so that a result which depends on either shows.
//
// Threads: any; a launch waits for the one before. Ownership: none. Blocking: a launch runs the kernel. Errors: Error
// where not all threads of a block come to a barrier, or not all lanes of a warp to a shuffle, or where they come to
// different ones. What a kernel throws comes out of the launch.
// Shared memory is as a GPU leaves it: here NaN, at the beginning of each block.
#pragma once

#include <cstdint>

namespace triax::test::host_cuda {

/// What decides all orders from now on.
void set_seed(std::uint32_t seed);

/// From now on a grid has no more blocks than this, whatever was asked for; 0: as many as that. CUDA would not do so;
/// but kernels walk (triax/cuda/launch.hpp), and shapes that make them do so on a real grid take minutes here.
void set_most_blocks(unsigned most);

/// Launches of graphs in this process.
int graphs_launched() noexcept;

} // namespace triax::test::host_cuda
