// SPDX-License-Identifier: Apache-2.0
// Descriptors of cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <array>
#include <cstdint>

#include "matrix.hpp"

namespace triax::gpu_stand_in {

// The first member says what a pointer points to.
enum class LtKind : std::uint32_t { kHandle = 0x4C540001, kProduct, kLayout, kPreference };

struct LtHandle {
  LtKind kind = LtKind::kHandle;
  int device = 0;
};

struct LtProduct {
  LtKind kind = LtKind::kProduct;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t operation_a = CUBLAS_OP_N, operation_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr; // or where its gradient comes
  void* aux = nullptr;        // the values before GELU
  std::int64_t aux_leading = 0;
  std::int32_t bias_type = -1, aux_type = -1; // -1: as D

  bool adds_bias() const;
  bool has_aux() const; // writes or reads the values before GELU
  bool sums_b() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
};

struct LtLayout {
  LtKind kind = LtKind::kLayout;
  Matrix matrix; // without an address
};

struct LtPreference {
  LtKind kind = LtKind::kPreference;
  std::uint64_t workspace_bytes = 0;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256}; // of A, B, C and D
};

// Throw BlasError if the pointer is not such an object.
LtHandle& handle_at(cublasLtHandle_t handle);
LtProduct& product_at(cublasLtMatmulDesc_t product);
LtLayout& layout_at(cublasLtMatrixLayout_t layout);
LtPreference& preference_at(cublasLtMatmulPreference_t preference);

} // namespace triax::gpu_stand_in
