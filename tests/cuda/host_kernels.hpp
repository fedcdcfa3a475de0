// Kernels with faults that only CUDA of the host can tell, and a few without: of a library of their own, since what is
// thread_local in it is shared memory (host_kernels.cu).
//
// Threads: the test's. Ownership: all memory is the caller's. Blocking: a launch runs the kernel. Errors: Error from
// CUDA of the host.
#pragma once

#include <cuda_runtime.h>

#include "triax/export.hpp"

namespace triax::cuda {

/// What a neighbour wrote is read: with a barrier before, or without.
TRIAX_API cudaError_t launch_neighbours(int* out, bool barrier, dim3 grid, dim3 block, cudaStream_t stream);
/// The first `most` threads come to a barrier, the others end.
TRIAX_API cudaError_t launch_some_at_a_barrier(unsigned most, cudaStream_t stream);
/// Odd threads come to another barrier than even ones.
TRIAX_API cudaError_t launch_two_barriers(cudaStream_t stream);
/// Lanes below `most` of each warp bring a number.
TRIAX_API cudaError_t launch_some_in_a_shuffle(unsigned most, cudaStream_t stream);
/// Each thread's number of its block is added to the counts of the grid's places.
TRIAX_API cudaError_t launch_places(int* counts, dim3 grid, dim3 block, cudaStream_t stream);
/// The first thread of each block writes what it finds in shared memory that nobody wrote, and then writes there.
TRIAX_API cudaError_t launch_unwritten(float* out, unsigned blocks, cudaStream_t stream);
/// Each block appends its number.
TRIAX_API cudaError_t launch_order(int* numbers, int* count, unsigned blocks, cudaStream_t stream);
/// What lanes and threads tell each other: bits of odd lanes, sums by halves, and votes.
TRIAX_API cudaError_t launch_together(unsigned* ballots, double* sums, int* votes, cudaStream_t stream);

} // namespace triax::cuda
