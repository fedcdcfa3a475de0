// SPDX-License-Identifier: Apache-2.0
// Every operation compared with the reference in double.
#include "support/gpu_kernels_suite.hpp"

namespace triax::test {
namespace {

/// In f32 all arithmetic is f32, so differences come from the order of sums, and from functions with an error of a few
/// units in the last place. In 16 bits each operation rounds its outputs (by 2^-9 in bf16, 2^-12 in f16). A fused
/// operation rounds several times, and attention, which takes exponentials of rounded scores, many times.
double tolerance(const OperationCase& one) {
  if (one.dtype == DType::f32) return 1e-5;
  const double rounding = one.dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  return one.name.starts_with("attention") ? 16 * rounding : 4 * rounding;
}

class Operations : public OnGpu, public ::testing::WithParamInterface<DType> {};

TEST_P(Operations, AgreeWithTheReference) {
  LoadedKernels reference("kernels-reference");
  for (const OperationCase& one : operation_cases(GetParam())) {
    try {
      EXPECT_EQ(compare(tested->set(), tested->device(), reference.set(), one, tolerance(one)), "") << one.name;
    } catch (const Error& error) {
      ADD_FAILURE() << one.name << ": " << error.what();
    }
  }
}

/// Views aligned to the size of their elements only.
TEST_P(Operations, AgreeWhereNothingIsAligned) {
  LoadedKernels reference("kernels-reference");
  for (const OperationCase& one : operation_cases(GetParam())) {
    try {
      EXPECT_EQ(compare(tested->set(), tested->device(), reference.set(), one, tolerance(one), 1), "") << one.name;
    } catch (const Error& error) {
      ADD_FAILURE() << one.name << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Operations, ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

} // namespace
} // namespace triax::test
