// SPDX-License-Identifier: Apache-2.0
// Kernel launches on the host: blocks run one after another in random order, and the threads of a block are fibers that
// take turns in random order, so that results that depend on either order differ.
//
// Threads: any; a launch waits for the previous one. Blocking: a launch runs the kernel. Errors: Error if not all
// threads of a block reach a barrier, or not all lanes of a warp a shuffle, or if they reach different ones. The launch
// rethrows what a kernel throws.
// Shared memory is uninitialised, as on a GPU: here it is NaN at the start of each block.
#pragma once

#include <cstdint>

namespace triax::test::host_cuda {

/// Seed of all later orders.
void set_seed(std::uint32_t seed);

/// Limits the blocks of later grids, whatever a launch requests; 0: no limit. CUDA does not do this. But kernels use
/// grid-stride loops (triax/cuda/launch.hpp), and shapes that need them on a real grid take minutes here.
void set_most_blocks(unsigned most);

/// Number of graph launches in this process.
int graphs_launched() noexcept;

} // namespace triax::test::host_cuda
