// SPDX-License-Identifier: Apache-2.0
// Kernels with errors that only the CUDA host emulator detects, and some correct ones. They are a separate library
// because its thread_local variables are shared memory (host_kernels.cu).
//
// Threads: the test's. Ownership: all memory is the caller's. Blocking: a launch runs the kernel. Errors: Error from
// the CUDA host emulator.
#pragma once

#include <cuda_runtime.h>

#include "triax/export.hpp"

namespace triax::cuda {

/// Each thread reads what its neighbour wrote, with or without a barrier in between.
TRIAX_API cudaError_t launch_neighbours(int* out, bool barrier, dim3 grid, dim3 block, cudaStream_t stream);
/// The first `most` threads wait at a barrier; the others exit.
TRIAX_API cudaError_t launch_some_at_a_barrier(unsigned most, cudaStream_t stream);
/// Odd and even threads wait at different barriers.
TRIAX_API cudaError_t launch_two_barriers(cudaStream_t stream);
/// Lanes below `most` of each warp take part in a shuffle of the full warp.
TRIAX_API cudaError_t launch_some_in_a_shuffle(unsigned most, cudaStream_t stream);
/// Each thread adds 1 to the element of its global index.
TRIAX_API cudaError_t launch_places(int* counts, dim3 grid, dim3 block, cudaStream_t stream);
/// The first thread of each block reads unwritten shared memory, and then writes to it.
TRIAX_API cudaError_t launch_unwritten(float* out, unsigned blocks, cudaStream_t stream);
/// Each block appends its index.
TRIAX_API cudaError_t launch_order(int* numbers, int* count, unsigned blocks, cudaStream_t stream);
/// Ballots of odd lanes, warp sums by shuffles, and votes of the block.
TRIAX_API cudaError_t launch_together(unsigned* ballots, double* sums, int* votes, cudaStream_t stream);

} // namespace triax::cuda
