// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: descriptors of products, and the selection of algorithms.
#include "lt.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "triax/cuda/primitives.hpp"

namespace triax::kernels_fused {

namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(text("{}: {} ({})", call, cublasGetStatusString(status), cublasGetStatusName(status)), "kernels-fused",
              "set CUBLASLT_LOG_LEVEL=5 for details");
}
#define TRIAX_LT(call) check((call), #call)

cudaDataType_t type_of(DType type) {
  switch (type) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

/// cuBLASLt's GELU is the tanh form, as in Activation::gelu_tanh.
cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_bwd:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::bias_bwd:
      return CUBLASLT_EPILOGUE_BGRADB;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

template <class T>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  TRIAX_LT(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value));
}
template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  TRIAX_LT(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

/// `bias`: the bias to add, or the memory for its gradient.
void set_pointers(cublasLtMatmulDesc_t product, const ProductShape& shape, const void* bias, void* gelu_aux) {
  if (shape.has_bias() || shape.epilogue == Epilogue::bias_bwd) set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (shape.has_gelu()) set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, gelu_aux);
}

cublasLtMatrixLayout_t layout(DType type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t out = nullptr;
  TRIAX_LT(cublasLtMatrixLayoutCreate(&out, type_of(type), static_cast<std::uint64_t>(rows),
                                      static_cast<std::uint64_t>(columns), rows));
  return out;
}

/// The constraints of a selection; owns the cuBLASLt object.
class Preference {
 public:
  Preference() {
    TRIAX_LT(cublasLtMatmulPreferenceCreate(&preference_));
    set(preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, cuda::kWorkspace);
    // Partial sums are added in f32 in a separate step, not in the order in which they become ready.
    set(preference_, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(preference_, attribute, std::uint32_t{16});
  }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

} // namespace

LtProducts::Plan::~Plan() {
  if (d) cublasLtMatrixLayoutDestroy(d);
  if (b) cublasLtMatrixLayoutDestroy(b);
  if (a) cublasLtMatrixLayoutDestroy(a);
  if (product) cublasLtMatmulDescDestroy(product);
}

LtProducts::~LtProducts() {
  plans_.clear();
  if (handle_) cublasLtDestroy(handle_);
}

void LtProducts::start(bool tf32) {
  tf32_ = tf32;
  TRIAX_LT(cublasLtCreate(&handle_));
}

const LtProducts::Plan* LtProducts::find(const ProductShape& shape) const {
  const auto known = std::ranges::find_if(plans_, [&](const auto& plan) { return plan->shape == shape; });
  return known == plans_.end() ? nullptr : known->get();
}

void LtProducts::describe(Plan& plan) const {
  const ProductShape& shape = plan.shape;
  const cublasComputeType_t compute =
      shape.in == DType::f32 && tf32_ ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  TRIAX_LT(cublasLtMatmulDescCreate(&plan.product, compute, CUDA_R_32F));
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(shape.epilogue));
  if (shape.has_gelu()) set(plan.product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.m);
  // Aligned to 16 bytes and not to 32, so that the heuristic assumes no more.
  alignas(32) static std::byte sample[32];
  set_pointers(plan.product, shape, sample + 16, sample + 16);
  plan.a = layout(shape.in, shape.lda(), shape.transpose_a ? shape.m : shape.k);
  plan.b = layout(shape.in, shape.ldb(), shape.transpose_b ? shape.k : shape.n);
  plan.d = layout(shape.out, shape.m, shape.n);
}

void LtProducts::choose(Plan& plan) const {
  const Preference preference;
  cublasLtMatmulHeuristicResult_t best{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, plan.product, plan.a, plan.b, plan.d, plan.d,
                                                               preference.get(), 1, &best, &count);
  // The status for an unsupported epilogue is not documented. A plain product must succeed.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
      (status != CUBLAS_STATUS_SUCCESS && plan.shape.epilogue != Epilogue::none))
    return;
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  plan.found = count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  plan.algorithm = best.algo;
}

bool LtProducts::prepare(const ProductShape& shape) {
  if (const Plan* known = find(shape)) return known->found;
  auto plan = std::make_unique<Plan>(shape);
  describe(*plan);
  choose(*plan);
  return plans_.emplace_back(std::move(plan))->found;
}

void LtProducts::run(const Product& product, std::span<std::byte> workspace, cudaStream_t stream) {
  const Plan& plan = *find(product.shape);
  // The descriptor holds the pointers of this call: cublasLtMatmul() reads it before it returns, also during capture.
  set_pointers(plan.product, product.shape, product.dbias ? product.dbias : product.bias, product.gelu_aux);
  const float alpha = 1, beta = product.shape.accumulates ? 1 : 0;
  TRIAX_LT(cublasLtMatmul(handle_, plan.product, &alpha, product.a, plan.a, product.b, plan.b, &beta, product.d, plan.d,
                          product.d, plan.d, &plan.algorithm, workspace.data(), cuda::kWorkspace, stream));
}

} // namespace triax::kernels_fused
