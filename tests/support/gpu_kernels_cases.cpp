// Every operation against the reference in double.
#include "support/gpu_kernels_suite.hpp"

namespace triax::testing {
namespace {

/// Arithmetic is f32 throughout, so in f32 what differs is the order of sums and functions to a few units of the last
/// place. In 16 bits each operation rounds what it writes (by 2^-9 in bf16, 2^-12 in f16); a fused operation is
/// several, and attention, which takes exponentials of rounded scores, is many.
double tolerance(const OperationCase& one) {
  if (one.dtype == DType::f32) return 1e-5;
  const double rounding = one.dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  return one.name.starts_with("attention") ? 16 * rounding : 4 * rounding;
}

class Operations : public OnGpu, public ::testing::WithParamInterface<DType> {};

TEST_P(Operations, AgreeWithTheReference) {
  LoadedKernels reference("kernels-reference");
  for (const OperationCase& one : suite_cases(GetParam())) {
    try {
      EXPECT_EQ(compare(tested->set(), tested->device(), reference.set(), one, tolerance(one)), "") << one.name;
    } catch (const Error& error) {
      ADD_FAILURE() << one.name << ": " << error.what();
    }
  }
}

/// Views that lie at multiples of their elements' size and no better.
TEST_P(Operations, AgreeWhereNothingIsAligned) {
  LoadedKernels reference("kernels-reference");
  for (const OperationCase& one : suite_cases(GetParam())) {
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
} // namespace triax::testing
