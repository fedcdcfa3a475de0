// What every kernel set on GPUs must do: gpu_kernels_*.cpp of this folder, built into the tests of each set with
// TRIAX_KERNELS as its name. What only one of them promises is tested in its own folder.
//
// Threads: one. Ownership: owns set and device. Blocking: starting cuBLAS takes a second. Errors: none: on a machine
// without a GPU a test skips with the reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"
#include "triax/cuda/device.hpp"

namespace triax::testing {

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Support answer = cuda::available({}); !answer) GTEST_SKIP() << answer.reason();
    Options options;
    options.set("tf32", false);
    tested = std::make_unique<LoadedKernels>(TRIAX_KERNELS, options);
  }
  std::unique_ptr<LoadedKernels> tested;
};

} // namespace triax::testing
