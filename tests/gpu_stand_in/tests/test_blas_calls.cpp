// SPDX-License-Identifier: Apache-2.0
// The cuBLAS and cuBLASLt stand-ins: what products compute, and each check with a planted fault.
#include <cublasLt.h>
#include <cublas_v2.h>

#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "runtime_harness.hpp"
#include "triax/half.hpp"

namespace triax::test {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

std::vector<float> counted(std::size_t count, float first) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = first + 0.25f * static_cast<float>(i % 7);
  return out;
}

class BlasTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    stream_ = make_stream();
  }
  static float* placed(const std::vector<float>& values) {
    auto* out = allocate<float>(values.size());
    ok(cudaMemcpy(out, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    return out;
  }
  std::vector<float> values_of(const float* from, std::size_t count) const {
    std::vector<float> out(count);
    ok(cudaStreamSynchronize(stream_));
    ok(cudaMemcpy(out.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost));
    return out;
  }
  /// The call returns this status, and prints a message with `text`.
  static void refused(cublasStatus_t status, const std::string& text, const std::function<cublasStatus_t()>& call) {
    ::testing::internal::CaptureStderr();
    const cublasStatus_t result = call();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(text));
    EXPECT_EQ(result, status) << text;
  }

  cudaStream_t stream_ = nullptr;
};

/// C = alpha A B + beta C in column-major order; all sizes are the arguments of a call that is right.
class Blas : public BlasTest {
 protected:
  static constexpr std::int64_t kM = 3, kN = 4, kK = 5, kBatch = 2;

  void SetUp() override {
    BlasTest::SetUp();
    ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSetStream(handle_, stream_), CUBLAS_STATUS_SUCCESS);
    a_ = placed(host_a_);
    b_ = placed(host_b_);
    c_ = placed(host_c_);
  }
  void TearDown() override { cublasDestroy(handle_); }

  cublasStatus_t gemm() {
    const float alpha = 2, beta = 0.5f;
    return cublasGemmStridedBatchedEx_64(handle_, transposed_ ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK,
                                         has_alpha_ ? &alpha : nullptr, a_, CUDA_R_32F, leading_a_, kM * kK, b_,
                                         type_b_, kK, kK * kN, &beta, c_, CUDA_R_32F, kM, stride_c_, batch_, compute_,
                                         algorithm_);
  }
  std::vector<float> expected() const {
    std::vector<float> out(host_c_.size());
    for (std::int64_t batch = 0; batch < kBatch; ++batch)
      for (std::int64_t n = 0; n < kN; ++n)
        for (std::int64_t m = 0; m < kM; ++m) {
          double sum = 0;
          for (std::int64_t k = 0; k < kK; ++k) {
            const std::int64_t in_a = transposed_ ? m * kK + k : k * kM + m;
            sum += static_cast<double>(host_a_[static_cast<std::size_t>(batch * kM * kK + in_a)]) *
                   static_cast<double>(host_b_[static_cast<std::size_t>(batch * kK * kN + n * kK + k)]);
          }
          const auto at = static_cast<std::size_t>(batch * kM * kN + n * kM + m);
          out[at] = static_cast<float>(2 * sum + 0.5 * static_cast<double>(host_c_[at]));
        }
    return out;
  }

  const std::vector<float> host_a_ = counted(kM * kK * kBatch, -1), host_b_ = counted(kK * kN * kBatch, 0.5f),
                           host_c_ = counted(kM * kN * kBatch, 3);
  cublasHandle_t handle_ = nullptr;
  float *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
  bool transposed_ = false;
  std::int64_t leading_a_ = kM, stride_c_ = kM * kN, batch_ = kBatch;
  bool has_alpha_ = true;
  cudaDataType type_b_ = CUDA_R_32F;
  cublasComputeType_t compute_ = CUBLAS_COMPUTE_32F;
  cublasGemmAlgo_t algorithm_ = CUBLAS_GEMM_DEFAULT;
};

TEST_F(Blas, AProductIsThatOfPlainLoops) {
  EXPECT_EQ(gemm(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of(c_, host_c_.size()), expected());
}

TEST_F(Blas, AMayBeTransposed) {
  transposed_ = true;
  leading_a_ = kK;
  EXPECT_EQ(gemm(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(values_of(c_, host_c_.size()), expected());
}

TEST_F(Blas, AProductLeavesItsWorkspaceUnwritten) {
  constexpr std::size_t kBytes = 1024;
  float* workspace = placed(counted(kBytes / sizeof(float), 1));
  EXPECT_EQ(cublasSetWorkspace(handle_, workspace, kBytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(), CUBLAS_STATUS_SUCCESS);
  ok(cudaStreamSynchronize(stream_));
  float value = 0;
  RuntimeTest::refused(cudaErrorIllegalAddress, "never written",
                       [&] { return cudaMemcpy(&value, workspace, sizeof value, cudaMemcpyDeviceToHost); });
}

TEST_F(Blas, WrongShapesAreRefused) {
  leading_a_ = kM - 1;
  refused(CUBLAS_STATUS_INVALID_VALUE, "A has leading dimension 2, and 3 rows", [this] { return gemm(); });
  leading_a_ = kM;
  stride_c_ = kM;
  refused(CUBLAS_STATUS_INVALID_VALUE, "matrices of the batch in C overlap", [this] { return gemm(); });
}

TEST_F(Blas, WrongPointersAreRefused) {
  float* const right = a_;
  a_ = right + 1;
  refused(CUBLAS_STATUS_INVALID_VALUE, "A: 60 bytes are not in one allocation", [this] { return gemm(); });
  a_ = c_;
  refused(CUBLAS_STATUS_INVALID_VALUE, "the output overlaps A: byte 0 of", [this] { return gemm(); });
  a_ = nullptr;
  refused(CUBLAS_STATUS_INVALID_VALUE, "A is null", [this] { return gemm(); });
  a_ = right;
  ok(cudaFree(b_));
  refused(CUBLAS_STATUS_INVALID_VALUE, "which was freed", [this] { return gemm(); });
}

TEST_F(Blas, OtherWrongArgumentsAreRefused) {
  const auto refuse = [this](cublasStatus_t status, const std::string& text, auto& argument, auto value) {
    const auto right = std::exchange(argument, value);
    refused(status, text, [this] { return gemm(); });
    argument = right;
  };
  refuse(CUBLAS_STATUS_INVALID_VALUE, "a size is negative", batch_, -1);
  refuse(CUBLAS_STATUS_INVALID_VALUE, "alpha or beta is null", has_alpha_, false);
  refuse(CUBLAS_STATUS_NOT_SUPPORTED, "does not know compute type 64", compute_, CUBLAS_COMPUTE_16F);
  refuse(CUBLAS_STATUS_NOT_SUPPORTED, "no product of CUDA_R_32F and CUDA_R_16F to CUDA_R_32F", type_b_, CUDA_R_16F);
  refuse(CUBLAS_STATUS_NOT_SUPPORTED, "does not know algorithm 3", algorithm_, CUBLAS_GEMM_ALGO3);
  EXPECT_EQ(gemm(), CUBLAS_STATUS_SUCCESS);
}

TEST_F(Blas, ModesAreKnownOrRefused) {
  for (const int mode :
       {int{CUBLAS_DEFAULT_MATH}, CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION,
        int{CUBLAS_TF32_TENSOR_OP_MATH}, int{CUBLAS_PEDANTIC_MATH}})
    EXPECT_EQ(cublasSetMathMode(handle_, static_cast<cublasMath_t>(mode)), CUBLAS_STATUS_SUCCESS) << mode;
  refused(CUBLAS_STATUS_NOT_SUPPORTED, "cublasSetMathMode: the stand-in does not know math mode 7",
          [this] { return cublasSetMathMode(handle_, static_cast<cublasMath_t>(7)); });
  for (const cublasAtomicsMode_t mode : {CUBLAS_ATOMICS_ALLOWED, CUBLAS_ATOMICS_NOT_ALLOWED})
    EXPECT_EQ(cublasSetAtomicsMode(handle_, mode), CUBLAS_STATUS_SUCCESS);
  refused(CUBLAS_STATUS_NOT_SUPPORTED, "cublasSetAtomicsMode: the stand-in does not know atomics mode 2",
          [this] { return cublasSetAtomicsMode(handle_, std::bit_cast<cublasAtomicsMode_t>(2)); });
}

TEST_F(Blas, AHandleIsOfItsDeviceUntilItIsDestroyed) {
  RuntimeTest::SetUp(); // the next device is current
  refused(CUBLAS_STATUS_INVALID_VALUE, "and the current device is GPU", [this] { return gemm(); });
  cublasHandle_t other = nullptr;
  ASSERT_EQ(cublasCreate(&other), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasDestroy(other), CUBLAS_STATUS_SUCCESS);
  refused(CUBLAS_STATUS_NOT_INITIALIZED, "was not created, or was destroyed", [&] { return cublasDestroy(other); });
  refused(CUBLAS_STATUS_NOT_INITIALIZED, "was not created, or was destroyed",
          [&] { return cublasSetMathMode(other, CUBLAS_DEFAULT_MATH); });
}

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
