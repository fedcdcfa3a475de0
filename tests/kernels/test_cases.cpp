// The reference against itself in f64, on every case that other sets are tested with.
#include <gtest/gtest.h>

#include "support/loaded_kernels.hpp"
#include "support/operation_cases.hpp"

namespace triax::testing {
namespace {

TEST(OperationCases, ReferenceInF32AgreesWithF64) {
  LoadedKernels reference("kernels-reference");
  for (const OperationCase& one : operation_cases(DType::f32)) {
    EXPECT_EQ(compare(reference.set(), reference.device(), reference.set(), one, 2e-6), "") << one.name;
  }
}

} // namespace
} // namespace triax::testing
