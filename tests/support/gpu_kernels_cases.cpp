// SPDX-License-Identifier: Apache-2.0
// Every operation compared with the reference in double, and with itself elsewhere in memory.
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

class Operations : public OnGpu, public ::testing::WithParamInterface<DType> {
 protected:
  /// At an aligned address; elsewhere, with the same bits; and where views are aligned to their elements only.
  void expect_agreement(const OperationCase& one) {
    const CaseResults want = reference_results(reference_.set(), one);
    const CaseResults first = run_case(tested->set(), tested->device(), one, one.dtype);
    EXPECT_EQ(differences(first, want, tolerance(one)), "") << one.name;
    EXPECT_TRUE(first == run_case(tested->set(), tested->device(), one, one.dtype, 256)) << one.name << ": other bits";
    const CaseResults unaligned = run_case(tested->set(), tested->device(), one, one.dtype, 1);
    EXPECT_EQ(differences(unaligned, want, tolerance(one)), "") << one.name << ", not aligned";
  }

 private:
  LoadedKernels reference_{"kernels-reference"};
};

TEST_P(Operations, AgreeWithTheReferenceWhereverViewsLie) {
  for (const OperationCase& one : operation_cases(GetParam())) {
    try {
      expect_agreement(one);
    } catch (const Error& error) {
      ADD_FAILURE() << one.name << ": " << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Operations, ::testing::Values(DType::f32, DType::bf16, DType::f16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

} // namespace
} // namespace triax::test
