// SPDX-License-Identifier: Apache-2.0
// Kernels for tests: one runs until the host ends it, and one writes to a given address.
//
// Threads: the test's. Ownership: the flag is the test's pinned memory. Blocking: never. Errors: launch errors are not
// checked.
#pragma once

#include <cuda_runtime_api.h>

namespace triax::cuda {

/// Runs until *flag, in pinned memory, is not 0. Stops after about two minutes, so that a failing test ends.
void launch_until(const unsigned* flag, cudaStream_t stream);
/// Writes to *address. An invalid address makes the GPU unusable for this process.
void launch_write(int* address, cudaStream_t stream);

} // namespace triax::cuda
