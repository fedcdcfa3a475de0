// The set on this machine's GPU, or the reason why a test skips.
//
// Threads: one. Ownership: owns set and device. Blocking: starting cuBLAS takes a second. Errors: none.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"
#include "triax/cuda/device.hpp"

namespace triax::cublas {

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Support answer = cuda::available({}); !answer) GTEST_SKIP() << answer.reason();
    Options options;
    options.set("tf32", false);
    tested = std::make_unique<triax::testing::LoadedKernels>("kernels-cublas", options);
  }
  std::unique_ptr<triax::testing::LoadedKernels> tested;
};

} // namespace triax::cublas
