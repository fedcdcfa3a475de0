// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of the CUDA host emulator: streams, and checks of memory.
//
// Threads: any. Blocking: put() runs the work, unless the stream is captured. Errors: Error for an invalid stream.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace triax::test::host_cuda {

/// Enqueues work on a stream.
void put(cudaStream_t stream, std::function<void()> work);

/// Stores an error for cudaGetLastError(), and returns it.
cudaError_t failed_with(cudaError_t error);

/// Throws Error unless [data, data + bytes) lies in one block of memory that a GPU can access.
void require_device_memory(const char* what, const void* data, std::size_t bytes);

} // namespace triax::test::host_cuda
