// SPDX-License-Identifier: Apache-2.0
// Calls with large sums give the same bits when they are repeated. gpu_kernels_cases.cpp repeats every operation.
#include "support/gpu_kernels_suite.hpp"

namespace triax::test {
namespace {

/// f32 sums over more rows and elements than one block handles, and products that cuBLAS may split over the inner
/// dimension.
TEST_F(OnGpu, LargeSumsGiveTheSameBitsAgain) {
  const auto tensor = [](const char* name, Role role, Shape shape) {
    return CaseTensor{.name = name, .role = role, .shape = shape};
  };
  const CaseTensor out{.name = "out", .role = Role::out, .shape = {1}, .kind = Kind::own, .dtype = DType::f64};
  const OperationCase cases[] = {
      {"bias_bwd",
       DType::f32,
       {tensor("dy", Role::in, {20011, 33}), tensor("db", Role::in_out, {33})},
       [](const CaseViews& v, const UseCall& use) {
         use(BiasBwd{v["db"], v["dy"]});
       }},
      {"sum_squares",
       DType::f32,
       {tensor("x", Role::in, {1'000'003}), out},
       [](const CaseViews& v, const UseCall& use) {
         use(SumSquares{v["out"], v["x"]});
       }},
      {"gemm",
       DType::f32,
       {tensor("a", Role::in, {16, 30000}), tensor("b", Role::in, {30000, 24}), tensor("d", Role::in_out, {16, 24})},
       [](const CaseViews& v, const UseCall& use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"], .beta = 1}); }},
  };
  for (const OperationCase& one : cases) {
    const CaseResults first = run_case(tested->set(), tested->device(), one, DType::f32);
    for (int again = 0; again < 5; ++again)
      EXPECT_TRUE(first == run_case(tested->set(), tested->device(), one, DType::f32)) << one.name;
  }
}

} // namespace
} // namespace triax::test
