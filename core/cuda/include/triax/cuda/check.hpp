// What CUDA says went wrong, as triax::Error: the call, where it stands, CUDA's own words, and the next step.
//
//   TRIAX_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
//   kernel<<<blocks, threads, shared, stream>>>(...);
//   TRIAX_CUDA_LAUNCHED("attention");
//
// Threads: any. Ownership: values. Blocking: never: an error of work that is still running shows at a later call. The
// executor adds the action that was being put on the stream. Errors: Error.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "triax/export.hpp"

namespace triax::cuda {

/// "an illegal memory access was encountered (cudaErrorIllegalAddress)"
TRIAX_API std::string text_of(cudaError_t error);
/// The next step for whoever reads of it.
TRIAX_API std::string hint_for(cudaError_t error);

[[noreturn]] TRIAX_API void fail(cudaError_t error, const char* call, const char* file, int line);

inline void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error != cudaSuccess) fail(error, call, file, line);
}

#define TRIAX_CUDA(call) ::triax::cuda::check((call), #call, __FILE__, __LINE__)
/// After a launch, which returns nothing itself.
#define TRIAX_CUDA_LAUNCHED(name) ::triax::cuda::check(cudaGetLastError(), "kernel " name, __FILE__, __LINE__)

} // namespace triax::cuda
