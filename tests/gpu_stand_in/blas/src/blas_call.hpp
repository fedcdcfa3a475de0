// SPDX-License-Identifier: Apache-2.0
// How calls of cuBLAS and cuBLASLt report what is wrong.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <functional>
#include <string>

#include "gpu_stand_in/runtime.hpp"
#include "matrix.hpp"

namespace triax::gpu_stand_in {

// A call that is refused. The message is printed.
struct BlasError : std::runtime_error {
  BlasError(cublasStatus_t error, const std::string& message) : std::runtime_error(message), status(error) {}
  cublasStatus_t status;
};

// Throws BlasError.
[[noreturn]] inline void invalid(const std::string& message) {
  throw BlasError(CUBLAS_STATUS_INVALID_VALUE, message);
}
[[noreturn]] inline void unknown(const std::string& message) {
  throw BlasError(CUBLAS_STATUS_NOT_SUPPORTED, "the stand-in does not know " + message);
}

// Runs the body of a call. Failures that TRIAX_GPU_FAIL plans, and BlasError, become its result.
cublasStatus_t blas_call(const char* name, const std::function<void()>& body);

// The address is not null, a multiple of `alignment`, and `bytes` from it are in one allocation of the device.
void check_memory(int device, const void* address, std::size_t bytes, std::size_t alignment, const std::string& what);
void check_leading(const Matrix& matrix, const std::string& what);
// The output may not share bytes with an input.
void check_apart(const Matrix& output, const Matrix& input, const std::string& what);
// The device of the stream. Throws BlasError if it is not the current one.
int check_stream(cudaStream_t stream);

// Fills the beginning of a workspace, and makes it count as never written: what a call leaves there is not defined.
void spoil_workspace(int device, void* workspace, std::size_t bytes);

struct ProductSize {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
};
// Counts a product for TRIAX_GPU_PROFILE. `type`: of A and B; `bytes`: of its operands and results, each once.
void count_product(cudaDataType type, cublasComputeType_t compute, const ProductSize& size, std::size_t bytes);

// Throws BlasError if the stream does not take the work.
void submit_product(cudaStream_t stream, const char* name, std::function<void()> work);

} // namespace triax::gpu_stand_in
