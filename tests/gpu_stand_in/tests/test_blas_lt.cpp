// SPDX-License-Identifier: Apache-2.0
// The cuBLASLt stand-in: what products and their epilogues compute, and each check with a planted fault.
#include <cublasLt.h>

#include <cmath>
#include <tuple>

#include "blas_harness.hpp"
#include "triax/half.hpp"

namespace triax::test {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

/// D = A B + epilogue, with a workspace of 1024 bytes.
class BlasLt : public BlasTest {
 protected:
  static constexpr std::int64_t kM = 8, kN = 2, kK = 4;

  void SetUp() override {
    BlasTest::SetUp();
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference_), CUBLAS_STATUS_SUCCESS);
    set_preference(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::size_t{1024});
    layout_a_ = layout(kM, kK);
    layout_b_ = layout(kK, kN);
    layout_d_ = layout(kM, kN);
    workspace_ = placed(counted(256, 0));
    for (float** each : {&d_, &aux_}) *each = placed(counted(kM * kN, 0));
    bias_ = placed(host_bias_);
    a_ = placed(host_a_);
    b_ = placed(host_b_);
  }
  void TearDown() override {
    for (const cublasLtMatrixLayout_t each : {layout_a_, layout_b_, layout_d_}) cublasLtMatrixLayoutDestroy(each);
    cublasLtMatmulPreferenceDestroy(preference_);
    cublasLtMatmulDescDestroy(product_);
    cublasLtDestroy(handle_);
  }
  static cublasLtMatrixLayout_t layout(std::int64_t rows, std::int64_t columns, cudaDataType type = CUDA_R_32F) {
    cublasLtMatrixLayout_t out = nullptr;
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&out, type, static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), rows),
              CUBLAS_STATUS_SUCCESS);
    return out;
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }
  template <class T>
  void set_preference(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t choose(int wanted = 1) {
    int count = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle_, product_, layout_a_, layout_b_, layout_d_, layout_d_, preference_,
                                          wanted, &chosen_, &count);
  }
  cublasStatus_t multiply(std::size_t workspace_bytes = 1024) {
    const float alpha = 1, beta = 0;
    return cublasLtMatmul(handle_, product_, &alpha, a_, layout_a_, b_, layout_b_, &beta, d_, layout_d_, d_, layout_d_,
                          &chosen_.algo, workspace_, workspace_bytes, stream_);
  }
  /// A B, and the bias of each row.
  std::vector<float> sums(bool with_bias = true) const {
    std::vector<float> out;
    for (std::size_t n = 0; n < kN; ++n)
      for (std::size_t m = 0; m < kM; ++m) {
        float sum = with_bias ? host_bias_[m] : 0;
        for (std::size_t k = 0; k < kK; ++k) sum += host_a_[k * kM + m] * host_b_[n * kK + k];
        out.push_back(sum);
      }
    return out;
  }
  void use_gelu(cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
    use_bias(epilogue);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(aux_));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kM);
  }
  void use_bias(cublasLtEpilogue_t epilogue) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias_));
  }
  /// Chooses, multiplies, and gives D.
  std::vector<float> product() {
    EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
    return values_of(d_, kM * kN);
  }
  static float gelu(float x) { return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); }

  const std::vector<float> host_a_ = counted(kM * kK, -1), host_b_ = counted(kK * kN, 0.5f),
                           host_bias_ = counted(kM, 1);
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  cublasLtMatrixLayout_t layout_a_ = nullptr, layout_b_ = nullptr, layout_d_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
  float *workspace_ = nullptr, *a_ = nullptr, *b_ = nullptr, *d_ = nullptr, *aux_ = nullptr, *bias_ = nullptr;
};

TEST_F(BlasLt, GeluOfBiasAndProductKeepsTheValuesBefore) {
  use_gelu();
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of(aux_, kM * kN), sums());
  std::vector<float> want;
  for (const float x : sums()) want.push_back(gelu(x));
  EXPECT_THAT(values_of(d_, kM * kN), Pointwise(FloatNear(1e-5f), want));
}

TEST_F(BlasLt, EpiloguesWithoutGelu) {
  EXPECT_EQ(product(), sums(false));
  use_bias(CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(product(), sums());
  use_bias(CUBLASLT_EPILOGUE_BGRADB); // the sum of each column of B
  EXPECT_EQ(product(), sums(false));
  std::vector<float> want(kN);
  for (std::size_t n = 0; n < host_b_.size(); ++n) want[n / kK] += host_b_[n];
  EXPECT_EQ(values_of(bias_, kN), want);
}

TEST_F(BlasLt, GeluWithoutABias) {
  use_gelu(CUBLASLT_EPILOGUE_GELU_AUX);
  std::vector<float> want;
  for (const float x : sums(false)) want.push_back(gelu(x));
  EXPECT_THAT(product(), Pointwise(FloatNear(1e-5f), want));
  EXPECT_EQ(values_of(aux_, kM * kN), sums(false));
}

TEST_F(BlasLt, TheGradientOfGeluIsOfTheValuesBefore) {
  const std::vector<float> before = counted(kM * kN, -1);
  aux_ = placed(before);
  use_gelu(CUBLASLT_EPILOGUE_DGELU);
  std::vector<float> want = sums(false);
  for (std::size_t n = 0; n < want.size(); ++n) {
    const float step = 1e-2f, x = before[n];
    want[n] *= (gelu(x + step) - gelu(x - step)) / (2 * step);
  }
  EXPECT_THAT(product(), Pointwise(FloatNear(2e-3f), want)); // the error of the difference quotient
}

TEST_F(BlasLt, MatricesOf16BitsGiveTheirProductIn32) {
  const auto check = [this]<class T>(cudaDataType type, T) {
    for (const auto& [layout_of, rows, columns] : {std::tuple(&layout_a_, kM, kK), std::tuple(&layout_b_, kK, kN)}) {
      cublasLtMatrixLayoutDestroy(*layout_of);
      *layout_of = layout(rows, columns, type);
    }
    const auto placed_as = [](const std::vector<float>& values) {
      std::vector<T> rounded;
      for (const float value : values) rounded.push_back(T(value)); // exact: multiples of 1/4
      T* out = allocate<T>(rounded.size());
      ok(cudaMemcpy(out, rounded.data(), rounded.size() * sizeof(T), cudaMemcpyHostToDevice));
      return reinterpret_cast<float*>(out);
    };
    a_ = placed_as(host_a_);
    b_ = placed_as(host_b_);
    EXPECT_EQ(product(), sums(false)) << type;
  };
  check(CUDA_R_16BF, Bf16());
  check(CUDA_R_16F, F16());
}

TEST_F(BlasLt, WrongDescriptorsAreRefused) {
  const auto invalid = [](const std::string& text, const std::function<cublasStatus_t()>& call) {
    refused(CUBLAS_STATUS_INVALID_VALUE, text, call);
  };
  const auto unknown = [](const std::string& text, const std::function<cublasStatus_t()>& call) {
    refused(CUBLAS_STATUS_NOT_SUPPORTED, text, call);
  };
  invalid("the count of algorithms is 0", [this] { return choose(0); });
  cublasLtMatmulDesc_t made = nullptr;
  unknown("compute type 64", [&] { return cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_16F, CUDA_R_32F); });
  unknown("scale of CUDA_R_16F", [&] { return cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_16F); });
  cublasLtMatrixLayout_t other = nullptr;
  unknown("matrices of type 3", [&] { return cublasLtMatrixLayoutCreate(&other, CUDA_R_8I, 1, 1, 1); });
  const std::int64_t wide = 0;
  invalid("CUBLASLT_MATMUL_DESC_TRANSA has 4 bytes, got 8",
          [&] { return cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide); });
  unknown("of preferences", [&] {
    return cublasLtMatmulPreferenceSetAttribute(preference_, CUBLASLT_MATMUL_PREF_SEARCH_MODE, &wide, 4);
  });
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU);
  unknown("epilogue 2", [this] { return choose(); });
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_C);
  unknown("operation 2", [this] { return choose(); });
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N);
  cublasLtMatrixLayoutDestroy(layout_b_);
  layout_b_ = layout(kK, kN, CUDA_R_16F);
  unknown("no product of CUDA_R_32F and CUDA_R_16F and CUDA_R_32F to CUDA_R_32F", [this] { return choose(); });
  cublasLtMatrixLayoutDestroy(layout_b_);
  layout_b_ = layout(0, kN);
  invalid("a matrix is 0 x 2", [this] { return choose(); });
  cublasLtMatrixLayoutDestroy(layout_b_);
  layout_b_ = layout(kK, kN);
}

TEST_F(BlasLt, CallsNeedAllTheirArguments) {
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  const float one = 1;
  const auto call = [&](const float* alpha, const cublasLtMatmulAlgo_t* algorithm) {
    return cublasLtMatmul(handle_, product_, alpha, a_, layout_a_, b_, layout_b_, &one, d_, layout_d_, d_, layout_d_,
                          algorithm, workspace_, 1024, stream_);
  };
  refused(CUBLAS_STATUS_INVALID_VALUE, "alpha or beta is null", [&] { return call(nullptr, &chosen_.algo); });
  refused(CUBLAS_STATUS_NOT_SUPPORTED, "products without an algorithm", [&] { return call(&one, nullptr); });
  EXPECT_EQ(call(&one, &chosen_.algo), CUBLAS_STATUS_SUCCESS);
  RuntimeTest::SetUp(); // the next device is current
  refused(CUBLAS_STATUS_INVALID_VALUE, "and the current device is GPU", [&] { return call(&one, &chosen_.algo); });
  stream_ = make_stream();
  refused(CUBLAS_STATUS_INVALID_VALUE, "the handle is GPU", [&] { return call(&one, &chosen_.algo); });
}

TEST_F(BlasLt, EpiloguesNeedTheirPointers) {
  use_gelu();
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(nullptr));
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  refused(CUBLAS_STATUS_INVALID_VALUE, "CUBLASLT_MATMUL_DESC_BIAS_POINTER is null", [this] { return multiply(); });
  use_gelu();
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(aux_ + 1));
  refused(CUBLAS_STATUS_INVALID_VALUE, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER is not at a multiple of 16",
          [this] { return multiply(); });
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kM + 1);
  refused(CUBLAS_STATUS_NOT_SUPPORTED, "it must be divisible by 8", [this] { return choose(); });
}

TEST_F(BlasLt, RefusesAnAlgorithmChosenForAnotherProduct) {
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
  refused(CUBLAS_STATUS_INVALID_VALUE, "the algorithm needs a workspace of 1024 bytes, and has 512",
          [this] { return multiply(512); });
  use_gelu();
  refused(CUBLAS_STATUS_INVALID_VALUE, "the algorithm was chosen for another epilogue", [this] { return multiply(); });
  chosen_ = {};
  refused(CUBLAS_STATUS_INVALID_VALUE, "does not come from cublasLtMatmulAlgoGetHeuristic",
          [this] { return multiply(); });
}

TEST_F(BlasLt, SizesMustMatch) {
  cublasLtMatrixLayoutDestroy(layout_b_);
  layout_b_ = layout(kK + 1, kN);
  refused(CUBLAS_STATUS_INVALID_VALUE, "sizes do not match: A is 8 x 4, B is 5 x 2", [this] { return choose(); });
}

TEST_F(BlasLt, AlignmentsOfTheAlgorithmAreChecked) {
  d_ = placed(counted(kM * kN + 4, 0)) + 4;
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  refused(CUBLAS_STATUS_INVALID_VALUE, "C is not at a multiple of 256 bytes", [this] { return multiply(); });
  set_preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{16});
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  refused(CUBLAS_STATUS_INVALID_VALUE, "D is not at a multiple of 256 bytes", [this] { return multiply(); });
  set_preference(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t{16});
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(multiply(), CUBLAS_STATUS_SUCCESS);
}

TEST_F(BlasLt, UnknownAttributesAreRefusedByNumber) {
  const std::int32_t value = 0;
  refused(CUBLAS_STATUS_NOT_SUPPORTED, "attribute", [&] {
    return cublasLtMatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_POINTER_MODE, &value, sizeof value);
  });
}

} // namespace
} // namespace triax::test
