// What the parts of CUDA of the host know of each other: streams, and memory that a GPU reaches.
//
// Threads: any. Ownership: none. Blocking: put() runs the work, unless the stream is captured. Errors: Error for the
// stream of nobody.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace triax::test::host_cuda {

/// The work's turn on a stream.
void put(cudaStream_t stream, std::function<void()> work);

/// Keeps an error for cudaGetLastError(), and returns it.
cudaError_t failed_with(cudaError_t error);

/// Throws Error unless [data, data + bytes) lies in one block of memory that a GPU reaches.
void require_device_memory(const char* what, const void* data, std::size_t bytes);

} // namespace triax::test::host_cuda
