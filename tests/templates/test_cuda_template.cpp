// SPDX-License-Identifier: Apache-2.0
// The template of a kernel set for GPUs: its own operation matches its formula, and has the same bits elsewhere in
// memory.
#include <gtest/gtest.h>

#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"

namespace triax::test {
namespace {

TEST(CudaTemplate, ItsSumMatchesTheFormula) {
  LoadedKernels tested(TEMPLATES "/kernels-template");
  int compared = 0;
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (const OperationCase& one : primitive_cases(type)) {
      if (!one.name.starts_with("add")) continue;
      ++compared;
      const CaseResults got = run_case(tested.set(), tested.device(), one, type);
      EXPECT_EQ(differences(one, got, formula_results(one), type == DType::f32 ? 1e-6 : 0x1p-8), "") << one.name;
      EXPECT_TRUE(got == run_case(tested.set(), tested.device(), one, type, 1)) << one.name << ": other bits";
    }
  EXPECT_GE(compared, 3);
}

} // namespace
} // namespace triax::test
