// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of the cuBLAS and cuBLASLt stand-ins.
#pragma once

#include <cublas_v2.h>

#include "runtime_harness.hpp"

namespace triax::test {

inline std::vector<float> counted(std::size_t count, float first) {
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
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr(text));
    EXPECT_EQ(result, status) << text;
  }

  cudaStream_t stream_ = nullptr;
};

} // namespace triax::test
