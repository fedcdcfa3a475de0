// SPDX-License-Identifier: Apache-2.0
// Tests that every GPU kernel set of this repository must pass, besides the conformance suite: gpu_kernels_*.cpp of
// this folder, built into the tests of each set, with TRIAX_KERNELS as its name. Each set's own folder tests what only
// that set guarantees.
//
// Ownership: owns set and device. Blocking: starting cuBLAS takes a second. Without a GPU, a test is skipped with the
// reason.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/gpu_stand_in.hpp"
#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"
#include "triax/cuda/cuda_device.hpp"

namespace triax::test {

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    tested = std::make_unique<LoadedKernels>(TRIAX_KERNELS);
  }
  std::unique_ptr<LoadedKernels> tested;
};

/// Compares the set's results with the formulas in double.
class AgainstFormulas : public OnGpu {
 protected:
  static CaseTensor tensor(const char* name, Role role, Shape shape) {
    return {.name = name, .role = role, .shape = shape};
  }
  static CaseTensor f32(const char* name, Role role, Shape shape) {
    return {.name = name, .role = role, .shape = shape, .kind = Kind::statistic};
  }
  void expect_near(const OperationCase& one, double tolerance) {
    EXPECT_EQ(compare(tested->set(), tested->device(), one, tolerance), "") << one.name;
  }
};

} // namespace triax::test
