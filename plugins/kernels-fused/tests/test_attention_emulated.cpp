// SPDX-License-Identifier: Apache-2.0
// Compares attention's kernels, run on the host thread by thread, with the reference in double.
#include <gtest/gtest.h>

#include "attention_cases.hpp"
#include "emulated_kernels.hpp"
#include "support/loaded_kernels.hpp"

namespace triax::kernels_fused {
namespace {

using namespace triax::test;

class Emulated : public ::testing::TestWithParam<DType> {
 protected:
  void expect_near(const OperationCase& one) {
    EXPECT_EQ(compare(set_, *host_, reference_.set(), one, attention_tolerance(one.dtype)), "") << one.name;
  }
  EmulatedKernels set_;
  std::unique_ptr<Device> host_ = make_host_device();
  LoadedKernels reference_{"kernels-reference"};
};

TEST_P(Emulated, AgreesOnTheCasesOfAllSets) {
  for (const OperationCase& one : fused_cases(GetParam()))
    if (one.name.starts_with("attention")) expect_near(one);
}

/// Head sizes that fill their tiles and head sizes that do not. Odd sizes are copied element by element.
TEST_P(Emulated, AgreesOnEveryWidthOfTile) {
  for (const std::int64_t width : {8, 31, 32, 40, 64, 77, 96, 128, 129, 256}) {
    const std::int64_t longest = width <= 64 ? 150 : 70;
    for (const AttentionShape& shape : random_shapes(static_cast<std::uint32_t>(width), 3, width, longest))
      expect_near(backward_case(GetParam(), shape));
  }
}

TEST_P(Emulated, WritesZerosWhereNothingIsSeen) {
  // No key at all; only keys at later positions; gradients of keys that no query sees.
  for (const AttentionShape& shape :
       {AttentionShape{.sq = 5, .sk = 20, .d = 16, .k0 = 30}, AttentionShape{.sq = 3, .sk = 70, .a = 2, .d = 16},
        AttentionShape{.sq = 40, .sk = 40, .b = 2, .d = 16, .lengths = true}})
    expect_near(backward_case(GetParam(), shape));
}

/// The order of threads and the completion times of copies change no bit.
TEST_P(Emulated, GivesTheSameBitsInAnyOrderOfThreads) {
  const AttentionShape shape{.sq = 70, .sk = 90, .a = 2, .d = 24, .q0 = 20, .p = 0.2f};
  const OperationCase one = backward_case(GetParam(), shape);
  EmulatedKernels other(77);
  EXPECT_TRUE(run_case(set_, *host_, one, GetParam()) == run_case(other, *host_, one, GetParam()));
}

/// Copies of 16 bytes and copies of single elements give the same result.
TEST_P(Emulated, GivesTheSameBitsWhereNothingIsAligned) {
  for (const std::int64_t width : {8, 32, 40, 256}) {
    for (const float p : {0.0f, 0.2f}) {
      const AttentionShape shape{.sq = 40, .sk = 50, .b = 2, .a = 2, .d = width, .q0 = 10, .p = p};
      const OperationCase one = backward_case(GetParam(), shape);
      EXPECT_TRUE(run_case(set_, *host_, one, GetParam()) == run_case(set_, *host_, one, GetParam(), 1)) << width;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Emulated, ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

} // namespace
} // namespace triax::kernels_fused
