// SPDX-License-Identifier: Apache-2.0
// Matrices in device memory, columns first, and products of them.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <string>
#include <vector>

namespace triax::gpu_stand_in {

struct Matrix {
  const void* address = nullptr;
  cudaDataType type = CUDA_R_32F;
  std::int64_t rows = 0, columns = 0;
  std::int64_t leading = 0; // elements from a column to the next

  std::size_t bytes() const;         // from the first element to the last
  std::size_t element_bytes() const; // without the gaps between columns
};

bool is_known_type(cudaDataType type); // f32, bf16, f16
std::size_t bytes_of(cudaDataType type);
std::string name_of(cudaDataType type);

float to_float(cudaDataType type, const std::byte* element);
// Rounds to the nearest, ties to even.
void from_float(cudaDataType type, std::byte* element, float value);

// Values of a matrix that `device` accesses, one column after the other. Throws StreamError with `what` in the message
// if an element is not in device memory, or was never written.
std::vector<float> read_matrix(int device, const Matrix& matrix, const std::string& what);

// What a call computes in: sums over k from the first element to the last, in double, so that the bits are the same in
// each run and on each machine. `a` is m x k, `b` is k x n, both with one column after the other.
std::vector<double> multiply(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m, std::int64_t n,
                             std::int64_t k);
std::vector<float> transpose(const std::vector<float>& values, std::int64_t rows, std::int64_t columns);

} // namespace triax::gpu_stand_in
