// SPDX-License-Identifier: Apache-2.0
// The cuBLAS stand-in: what products compute, and each check with a planted fault.
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "blas_harness.hpp"

namespace triax::test {
namespace {

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

TEST(BlasStatus, NamesAndTextsAreThoseOfCublas) {
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_SUCCESS), "CUBLAS_STATUS_SUCCESS");
  EXPECT_STREQ(cublasGetStatusString(CUBLAS_STATUS_SUCCESS), "success");
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_EXECUTION_FAILED), "CUBLAS_STATUS_EXECUTION_FAILED");
  EXPECT_STREQ(cublasGetStatusString(CUBLAS_STATUS_EXECUTION_FAILED), "the function failed to launch on the GPU");
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_LICENSE_ERROR), "CUBLAS_STATUS_LICENSE_ERROR");
  EXPECT_STREQ(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED), "the requested functionality is not supported");
  const auto unknown = std::bit_cast<cublasStatus_t>(99);
  EXPECT_STREQ(cublasGetStatusName(unknown), "unrecognized status");
  EXPECT_STREQ(cublasGetStatusString(unknown), "unrecognized status");
}

// 0 if C, a product of 2 x 1 x 3 with each compute type, is zero, and what is behind it unchanged.
int zero_product() {
  float* data = nullptr;
  cudaMalloc(reinterpret_cast<void**>(&data), 16 * sizeof(float));
  const std::vector<float> ones(16, 1);
  cudaMemcpy(data, ones.data(), 16 * sizeof(float), cudaMemcpyHostToDevice);
  cublasHandle_t handle = nullptr;
  cublasCreate(&handle);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cublasSetStream(handle, stream);
  const float alpha = 1, beta = 0;
  for (const cublasComputeType_t compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32})
    cublasGemmStridedBatchedEx_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 3, &alpha, data, CUDA_R_32F, 2, 6, data + 6,
                                  CUDA_R_32F, 3, 3, &beta, data + 9, CUDA_R_32F, 2, 2, 1, compute, CUBLAS_GEMM_DEFAULT);
  cudaStreamSynchronize(stream);
  std::vector<float> results(3);
  cudaMemcpy(results.data(), data + 9, 3 * sizeof(float), cudaMemcpyDeviceToHost);
  return results == std::vector<float>{0, 0, 1} ? 0 : 1;
}

// In a separate process, which reads the variables when it first uses a device.
TEST(BlasDeathTest, ZeroProductsAreCountedAndNotComputed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char* kName = "TRIAX_GPU_PROFILE";
  const bool is_child = std::getenv(kName) != nullptr; // it runs this test from its begin
  const std::string file =
      is_child ? std::getenv(kName) : ::testing::TempDir() + "gpu-stand-in-products-" + std::to_string(getpid());
  setenv(kName, file.c_str(), 1);
  setenv("TRIAX_GPU_PRODUCTS", "zero", 1);
  EXPECT_EXIT(std::exit(zero_product()), ::testing::ExitedWithCode(0), "");
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  for (const char* type : {"CUDA_R_32F", "CUDA_R_32F as TF32"})
    EXPECT_THAT(text.str(), ::testing::HasSubstr(std::string("{\"call\": \"product ") + type +
                                                 " 2 x 1 x 3\", \"launches\": 1, \"flops\": 12, \"bytes\": 44}\n"));
  std::filesystem::remove(file);
  unsetenv(kName);
  unsetenv("TRIAX_GPU_PRODUCTS");
}

} // namespace
} // namespace triax::test
