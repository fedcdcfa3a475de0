// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"

#include <cstring>

#include "gpu_stand_in/runtime.hpp"
#include "triax/half.hpp"

namespace triax::gpu_stand_in {

namespace {

template <class T>
T read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

} // namespace

std::size_t Matrix::bytes() const {
  return static_cast<std::size_t>((columns - 1) * leading + rows) * bytes_of(type);
}

std::size_t Matrix::element_bytes() const {
  return static_cast<std::size_t>(columns * rows) * bytes_of(type);
}

bool is_known_type(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F;
}

std::size_t bytes_of(cudaDataType type) {
  return type == CUDA_R_32F ? 4 : 2;
}

std::string name_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_32F:
      return "CUDA_R_32F";
    case CUDA_R_16BF:
      return "CUDA_R_16BF";
    case CUDA_R_16F:
      return "CUDA_R_16F";
    default:
      return "type " + std::to_string(type);
  }
}

float to_float(cudaDataType type, const std::byte* element) {
  if (type == CUDA_R_32F) return read_as<float>(element);
  if (type == CUDA_R_16F) return read_as<F16>(element);
  return read_as<Bf16>(element);
}

void from_float(cudaDataType type, std::byte* element, float value) {
  if (type == CUDA_R_32F) {
    std::memcpy(element, &value, sizeof value);
    return;
  }
  const std::uint16_t bits = type == CUDA_R_16F ? F16(value).bits : Bf16(value).bits;
  std::memcpy(element, &bits, sizeof bits);
}

std::vector<float> read_matrix(int device, const Matrix& matrix, const std::string& what) {
  std::vector<float> values(static_cast<std::size_t>(matrix.rows * matrix.columns));
  const std::size_t width = bytes_of(matrix.type);
  const auto* column = static_cast<const std::byte*>(matrix.address);
  std::size_t next = 0;
  for (std::int64_t c = 0; c < matrix.columns; ++c) {
    const std::byte* data = data_to_read(device, column, static_cast<std::size_t>(matrix.rows) * width, what);
    for (std::int64_t r = 0; r < matrix.rows; ++r) values[next++] = to_float(matrix.type, data + r * width);
    column += matrix.leading * static_cast<std::int64_t>(width);
  }
  return values;
}

std::vector<float> transpose(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<float> transposed(values.size());
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) transposed[r * columns + c] = values[c * rows + r];
  }
  return transposed;
}

std::vector<double> multiply(const std::vector<float>& a, const std::vector<float>& b, std::int64_t m, std::int64_t n,
                             std::int64_t k) {
  std::vector<double> d(static_cast<std::size_t>(m * n), 0.0);
  if (has_zero_products()) return d;
  for (std::int64_t column = 0; column < n; ++column) {
    double* const out = &d[column * m];
    for (std::int64_t z = 0; z < k; ++z) {
      const double factor = b[column * k + z];
      const float* const values = &a[z * m];
      for (std::int64_t row = 0; row < m; ++row) out[row] += factor * static_cast<double>(values[row]);
    }
  }
  return d;
}

} // namespace triax::gpu_stand_in
