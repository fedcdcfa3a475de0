// SPDX-License-Identifier: Apache-2.0
// Every operation compared with the reference in double, with every instruction set of this machine.
#include <gtest/gtest.h>

#include "sets.hpp"
#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"

namespace triax::kernels_cpu {
namespace {

TEST(Operations, AgreeWithTheReference) {
  triax::test::LoadedKernels reference("kernels-reference");
  for (const Loops* loops : all_loops()) {
    CpuSet tested(2, *loops);
    for (const auto& one : triax::test::operation_cases(DType::f32)) {
      EXPECT_EQ(compare(tested.set(), tested.device(), reference.set(), one, 4e-6), "")
          << loops->name << ", " << one.name;
    }
  }
}

/// In bf16 each output is rounded once, by at most 2^-9; some cases make two calls.
TEST(Operations, OnBf16AgreeWithTheReference) {
  triax::test::LoadedKernels reference("kernels-reference");
  for (const Loops* loops : all_loops()) {
    CpuSet tested(2, *loops);
    for (const auto& one : triax::test::operation_cases(DType::bf16)) {
      EXPECT_EQ(compare(tested.set(), tested.device(), reference.set(), one, 8e-3), "")
          << loops->name << ", " << one.name;
    }
  }
}

/// In f16 the rounding is at most 2^-12; attention's backward reads the rounded results of its forward.
TEST(Operations, OnF16AgreeWithTheReference) {
  triax::test::LoadedKernels reference("kernels-reference");
  for (const Loops* loops : all_loops()) {
    CpuSet tested(2, *loops);
    for (const auto& one : triax::test::operation_cases(DType::f16)) {
      EXPECT_EQ(compare(tested.set(), tested.device(), reference.set(), one, 2e-3), "")
          << loops->name << ", " << one.name;
    }
  }
}

TEST(Operations, AreRefusedInOtherTypes) {
  CpuSet tested(1);
  int refused = 0;
  for (const auto& one : triax::test::operation_cases(DType::f64)) {
    try {
      run_case(tested.set(), tested.device(), one, DType::f64);
    } catch (const Error& error) {
      EXPECT_NE(error.message().find("kernels-cpu"), std::string::npos) << error.what();
      EXPECT_NE(error.message().find("fp64"), std::string::npos) << error.what();
      ++refused;
      continue;
    }
    EXPECT_TRUE(one.name.starts_with("step_control")) << one.name; // its views are f64 in every set
  }
  EXPECT_GT(refused, 100);
}

} // namespace
} // namespace triax::kernels_cpu
