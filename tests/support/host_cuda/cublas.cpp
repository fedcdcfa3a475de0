// SPDX-License-Identifier: Apache-2.0
// Matrix products as cuBLAS defines them, as plain loops over columns.
#include <cublas_v2.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "support/host_cuda/streams.hpp"
#include "triax/cuda/rounding.hpp"
#include "triax/error.hpp"

using namespace triax::test::host_cuda;

struct cublasContext {
  cudaStream_t stream = nullptr;
  std::byte* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int math = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
};

namespace {

constexpr std::size_t kScribbled = 4096; // bytes overwritten at each end of the workspace

std::size_t bytes_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? 4 : 2;
}

float load(const void* data, cudaDataType_t type, std::int64_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  if (type == CUDA_R_16BF) return triax::cuda::value_of(static_cast<const triax::Bf16*>(data)[at]);
  return triax::cuda::value_of(static_cast<const triax::F16*>(data)[at]);
}

void store(void* data, cudaDataType_t type, std::int64_t at, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[at] = value;
  } else if (type == CUDA_R_16BF) {
    static_cast<triax::Bf16*>(data)[at] = triax::cuda::rounded<triax::Bf16>(value);
  } else {
    static_cast<triax::F16*>(data)[at] = triax::cuda::rounded<triax::F16>(value);
  }
}

/// Rounds to the 10 mantissa bits of TF32.
float as_tf32(float value) {
  constexpr std::uint32_t kLost = 13;
  auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7F800000u) == 0x7F800000u) return value;
  bits += (1u << (kLost - 1)) - 1 + (bits >> kLost & 1);
  return std::bit_cast<float>(bits >> kLost << kLost);
}

/// A matrix as in cuBLAS: column-major, `rows` elements per column, leading dimension `ld`.
struct Matrix {
  const char* name;
  const void* data;
  cudaDataType_t type;
  std::int64_t rows, columns, ld, stride;

  bool valid() const { return ld >= std::max<std::int64_t>(1, rows); }
  std::int64_t at(std::int64_t row, std::int64_t column) const { return row + column * ld; }
  const void* of(std::int64_t index) const {
    return static_cast<const std::byte*>(data) + index * stride * static_cast<std::int64_t>(bytes_of(type));
  }
  void require_there(std::int64_t batch) const {
    if (rows == 0 || columns == 0) return;
    for (std::int64_t i = 0; i < batch; ++i)
      require_device_memory(name, of(i), static_cast<std::size_t>(at(rows - 1, columns - 1) + 1) * bytes_of(type));
  }
};

/// op(matrix), row-major.
std::vector<float> operand(const Matrix& matrix, cublasOperation_t op, std::int64_t index, bool tf32) {
  const std::int64_t rows = op == CUBLAS_OP_N ? matrix.rows : matrix.columns;
  const std::int64_t columns = op == CUBLAS_OP_N ? matrix.columns : matrix.rows;
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const float value = load(matrix.of(index), matrix.type, op == CUBLAS_OP_N ? matrix.at(i, j) : matrix.at(j, i));
      out.push_back(tf32 ? as_tf32(value) : value);
    }
  return out;
}

struct Product {
  cublasOperation_t op_a, op_b;
  Matrix a, b, c;
  float alpha, beta;
  bool tf32;
};

void multiply(const Product& product, std::int64_t index) {
  const std::int64_t m = product.c.rows, n = product.c.columns;
  const std::int64_t k = product.op_a == CUBLAS_OP_N ? product.a.columns : product.a.rows;
  const std::vector<float> a = operand(product.a, product.op_a, index, product.tf32);
  const std::vector<float> b = operand(product.b, product.op_b, index, product.tf32);
  void* const c = const_cast<void*>(product.c.of(index));
  std::vector<float> sums(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < m; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (std::int64_t p = 0; p < k; ++p) {
      const float factor = a[static_cast<std::size_t>(i * k + p)];
      const float* row = b.data() + p * n;
      for (std::int64_t j = 0; j < n; ++j) sums[static_cast<std::size_t>(j)] += factor * row[j];
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t at = product.c.at(i, j);
      float value = product.alpha * sums[static_cast<std::size_t>(j)];
      if (product.beta != 0) value += product.beta * load(c, product.c.type, at);
      store(c, product.c.type, at, value);
    }
  }
}

bool known(cudaDataType_t type) {
  return type == CUDA_R_32F || type == CUDA_R_16BF || type == CUDA_R_16F;
}

/// Settings that a handle needs before its first product.
void require_ready(const cublasContext& handle) {
  TRIAX_REQUIRE((handle.math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) != 0 &&
                    handle.atomics == CUBLAS_ATOMICS_NOT_ALLOWED,
                "a product may be summed in 16 bits, or in any order");
  TRIAX_REQUIRE(handle.workspace, "a product without a workspace of the caller's: cuBLAS takes one of its own");
}

} // namespace

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    default:
      return "CUBLAS_STATUS";
  }
}
const char* cublasGetStatusString(cublasStatus_t) {
  return "what cuBLAS of the host says";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = std::make_unique<cublasContext>().release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  const std::unique_ptr<cublasContext> gone(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  handle->atomics = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  require_device_memory("cuBLAS's workspace", workspace, bytes);
  handle->workspace = static_cast<std::byte*>(workspace);
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                             std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
                                             const void* a, cudaDataType_t type_a, std::int64_t lda, long long stride_a,
                                             const void* b, cudaDataType_t type_b, std::int64_t ldb, long long stride_b,
                                             const void* beta, void* c, cudaDataType_t type_c, std::int64_t ldc,
                                             long long stride_c, std::int64_t batch, cublasComputeType_t compute,
                                             cublasGemmAlgo_t algo) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || k < 0 || batch < 0 || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
  const bool straight_a = op_a == CUBLAS_OP_N, straight_b = op_b == CUBLAS_OP_N;
  const Product product{op_a,
                        op_b,
                        {"A", a, type_a, straight_a ? m : k, straight_a ? k : m, lda, stride_a},
                        {"B", b, type_b, straight_b ? k : n, straight_b ? n : k, ldb, stride_b},
                        {"C", c, type_c, m, n, ldc, stride_c},
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta),
                        compute == CUBLAS_COMPUTE_32F_FAST_TF32};
  if (!product.a.valid() || !product.b.valid() || !product.c.valid()) return CUBLAS_STATUS_INVALID_VALUE;
  if (!known(type_a) || !known(type_c) || type_a != type_b || (type_c != type_a && type_c != CUDA_R_32F) ||
      (product.tf32 && type_a != CUDA_R_32F) || algo != CUBLAS_GEMM_DEFAULT)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  require_ready(*handle);
  for (const Matrix& matrix : {product.a, product.b, product.c}) matrix.require_there(batch);
  put(handle->stream, [product, batch, workspace = handle->workspace, bytes = handle->workspace_bytes] {
    std::memset(workspace, 0xA5, std::min(bytes, kScribbled));
    std::memset(workspace + bytes - std::min(bytes, kScribbled), 0xA5, std::min(bytes, kScribbled));
    for (std::int64_t i = 0; i < batch; ++i) multiply(product, i);
  });
  return CUBLAS_STATUS_SUCCESS;
}
