// SPDX-License-Identifier: Apache-2.0
// cuBLASLt calls: handles and descriptors.
#include "lt_descriptors.hpp"

#include <cstring>

#include "blas_call.hpp"

namespace triax::gpu_stand_in {

namespace {

template <class T>
T& object_at(void* pointer, LtKind kind, const char* name) {
  auto* object = static_cast<T*>(pointer);
  if (object && object->kind == kind) return *object;
  invalid(std::string("the pointer is not a ") + name + ", or that was destroyed");
}

template <class T>
void destroy(T& object) {
  object.kind = LtKind{}; // the next use of the pointer may find it
  delete &object;
}

template <class T>
void take(T& field, const void* value, std::size_t bytes, const std::string& what) {
  if (bytes != sizeof field || !value) {
    invalid(what + " has " + std::to_string(sizeof field) + " bytes, got " + std::to_string(bytes));
  }
  std::memcpy(&field, value, bytes);
}

void set_attribute(LtProduct& product, cublasLtMatmulDescAttributes_t attribute, const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(product.operation_a, value, bytes, "CUBLASLT_MATMUL_DESC_TRANSA");
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(product.operation_b, value, bytes, "CUBLASLT_MATMUL_DESC_TRANSB");
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(product.epilogue, value, bytes, "CUBLASLT_MATMUL_DESC_EPILOGUE");
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(product.bias, value, bytes, "CUBLASLT_MATMUL_DESC_BIAS_POINTER");
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(product.bias_type, value, bytes, "CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE");
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(product.aux, value, bytes, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER");
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(product.aux_leading, value, bytes, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD");
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return take(product.aux_type, value, bytes, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE");
    default:
      unknown("attribute " + std::to_string(attribute) + " of products");
  }
}

void set_attribute(LtPreference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                   std::size_t bytes) {
  std::uint32_t schemes = 0;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(preference.workspace_bytes, value, bytes, "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES");
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: // sums are in one order anyway
      return take(schemes, value, bytes, "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(preference.alignments[0], value, bytes, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(preference.alignments[1], value, bytes, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(preference.alignments[2], value, bytes, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES");
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(preference.alignments[3], value, bytes, "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES");
    default:
      unknown("attribute " + std::to_string(attribute) + " of preferences");
  }
}

} // namespace

bool LtProduct::adds_bias() const {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool LtProduct::has_aux() const {
  return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_DGELU;
}

LtHandle& handle_at(cublasLtHandle_t handle) {
  return object_at<LtHandle>(handle, LtKind::kHandle, "handle of cuBLASLt");
}
LtProduct& product_at(cublasLtMatmulDesc_t product) {
  return object_at<LtProduct>(product, LtKind::kProduct, "descriptor of a product");
}
LtLayout& layout_at(cublasLtMatrixLayout_t layout) {
  return object_at<LtLayout>(layout, LtKind::kLayout, "layout of a matrix");
}
LtPreference& preference_at(cublasLtMatmulPreference_t preference) {
  return object_at<LtPreference>(preference, LtKind::kPreference, "preference");
}

} // namespace triax::gpu_stand_in

using namespace triax::gpu_stand_in; // calls of cuBLASLt have its global names

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return blas_call("cublasLtCreate", [&] {
    *handle = reinterpret_cast<cublasLtHandle_t>(new LtHandle{LtKind::kHandle, current_device()});
  });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return blas_call("cublasLtDestroy", [&] { destroy(handle_at(handle)); });
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType scale) {
  return blas_call("cublasLtMatmulDescCreate", [&] {
    if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) {
      unknown("compute type " + std::to_string(compute));
    }
    if (scale != CUDA_R_32F) unknown("scale of " + name_of(scale));
    auto* made = new LtProduct;
    made->compute = compute;
    *product = reinterpret_cast<cublasLtMatmulDesc_t>(made);
  });
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  return blas_call("cublasLtMatmulDescDestroy", [&] { destroy(product_at(product)); });
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  return blas_call("cublasLtMatmulDescSetAttribute",
                   [&] { set_attribute(product_at(product), attribute, value, bytes); });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  return blas_call("cublasLtMatrixLayoutCreate", [&] {
    if (!is_known_type(type)) unknown("matrices of " + name_of(type));
    const Matrix matrix{nullptr, type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading};
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new LtLayout{LtKind::kLayout, matrix});
  });
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return blas_call("cublasLtMatrixLayoutDestroy", [&] { destroy(layout_at(layout)); });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return blas_call("cublasLtMatmulPreferenceCreate",
                   [&] { *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new LtPreference); });
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return blas_call("cublasLtMatmulPreferenceDestroy", [&] { destroy(preference_at(preference)); });
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  return blas_call("cublasLtMatmulPreferenceSetAttribute",
                   [&] { set_attribute(preference_at(preference), attribute, value, bytes); });
}

} // extern "C"
