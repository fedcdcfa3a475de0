// Kernels that tests need: one that runs until the host lets it end, and one that does wrong.
//
// Threads: the test's. Ownership: the flag is the test's pinned memory. Blocking: never. Errors: none are looked at.
#pragma once

#include <cuda_runtime_api.h>

namespace triax::cuda {

/// Runs until *flag, in pinned memory, is not 0; gives up after some minutes, so that a failing test ends.
void launch_until(const unsigned* flag, cudaStream_t stream);
/// Writes to *place. Where nothing is, the GPU is lost to this process.
void launch_write(int* place, cudaStream_t stream);

} // namespace triax::cuda
