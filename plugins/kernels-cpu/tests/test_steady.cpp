// SPDX-License-Identifier: Apache-2.0
// Steady state: operations do not call operator new, in the calling thread or in the pool's threads.
#include <gtest/gtest.h>

#include "sets.hpp"
#include "support/count_allocations.hpp"
#include "support/operation_cases.hpp"

namespace triax::kernels_cpu {
namespace {

/// Runs the calls of a case again after its first run, and counts the allocations of three repetitions.
class Repeated {
 public:
  Repeated(CpuSet& set) : set_(set) {}
  std::size_t allocations_of(const triax::test::OperationCase& one) {
    std::size_t counted = 0;
    triax::test::OperationCase again = one;
    again.build = [&](const triax::test::CaseViews& views, const triax::test::UseCall& use) {
      one.build(views, use);
      one.build(views, triax::test::UseCall([&](const OpCall& call) { counted += issue(call); }));
    };
    run_case(set_.set(), set_.device(), again, DType::f32);
    return counted;
  }

 private:
  std::size_t issue(const OpCall& call) {
    std::vector<std::byte> scratch(set_.set().scratch_bytes(call));
    const OpContext context{set_.stream(), scratch};
    set_.set().issue(call, context);
    const std::size_t before = triax::test::allocations_of_all_threads();
    for (int i = 0; i < 3; ++i) set_.set().issue(call, context);
    return triax::test::allocations_of_all_threads() - before;
  }
  CpuSet& set_;
};

TEST(SteadyState, NoOperationAllocates) {
  CpuSet set(2);
  Repeated repeated(set);
  for (const auto& one : triax::test::operation_cases(DType::f32)) {
    EXPECT_EQ(repeated.allocations_of(one), 0u) << one.name;
  }
  const std::size_t before = triax::test::allocations_of_all_threads();
  const auto one = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(triax::test::allocations_of_all_threads() - before, 2u) << *one; // the counter works
}

} // namespace
} // namespace triax::kernels_cpu
