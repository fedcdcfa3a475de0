// SPDX-License-Identifier: Apache-2.0
// CUDA errors as triax::Error: the call, its file and line, CUDA's error text, and a hint.
//
//   TRIAX_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
//   kernel<<<blocks, threads, shared, stream>>>(...);
//   TRIAX_CUDA_LAUNCHED("attention");
//
// Threads: any. Ownership: values. Blocking: never: an error of work that still runs is reported by a later call.
// Errors: Error; the executor adds the action that was being enqueued.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "triax/export.hpp"

namespace triax::cuda {

/// "an illegal memory access was encountered (cudaErrorIllegalAddress)"
TRIAX_API std::string text_of(cudaError_t error);
/// The next step for the user after this error.
TRIAX_API std::string hint_for(cudaError_t error);

/// Throws the Error of a call that failed: text_of(), file and line, hint_for().
[[noreturn]] TRIAX_API void fail(cudaError_t error, const char* call, const char* file, int line);

/// Throws the Error of fail() unless the call succeeded.
inline void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error != cudaSuccess) fail(error, call, file, line);
}

/// Checks a call of the CUDA runtime.
#define TRIAX_CUDA(call) ::triax::cuda::check((call), #call, __FILE__, __LINE__)
/// Checks a launch, which returns no error code itself.
#define TRIAX_CUDA_LAUNCHED(name) ::triax::cuda::check(cudaGetLastError(), "kernel " name, __FILE__, __LINE__)

} // namespace triax::cuda
