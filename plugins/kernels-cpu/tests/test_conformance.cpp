// SPDX-License-Identifier: Apache-2.0
// Checks of the conformance suite that loops can fail, with the loops of every instruction set of this machine but the
// best. The plugin takes the best ones, and passes the whole suite (conformance.kernels-cpu).
#include <gtest/gtest.h>

#include <memory>

#include "sets.hpp"
#include "triax/conformance/allocations.hpp"
#include "triax/conformance/kernel_checks.hpp"
#include "triax/conformance/output.hpp"
#include "triax/conformance/run.hpp"

namespace triax::kernels_cpu {
namespace {

class Conformance : public ::testing::TestWithParam<const Loops*> {
 protected:
  static conformance::KernelSubject subject() {
    const auto with_threads = [](int threads) {
      return conformance::own<KernelSet>(std::make_unique<CpuKernels>(threads, *GetParam()));
    };
    conformance::KernelSubject out;
    out.name = "kernels-cpu";
    out.kernels = [with_threads] { return with_threads(2); };
    out.with_threads = with_threads;
    out.answers = conformance::ask_kernels(*out.kernels());
    out.allocations = conformance::allocations_of_all_threads;
    return out;
  }
};

constexpr const char* kChecksOfLoops =
    "*.IsItsFormula:Outputs.MayBeInputs:Views.*:Bits.OfAnElement*:Bits.*Threads:Working.*:Dropout.*";

TEST_P(Conformance, OfLoops) {
  int passed = 0;
  for (const conformance::Check& check : select(conformance::kernel_checks(subject()), kChecksOfLoops)) {
    const conformance::Result result = conformance::run_check(check, {.in_this_process = true});
    passed += result.outcome == conformance::Outcome::passed;
    for (const std::string& failure : result.failures)
      ADD_FAILURE() << check.name << ": " << failure << "\n" << conformance::clause_text(result.clause);
  }
  EXPECT_GT(passed, static_cast<int>(KernelSet::kOps));
}

std::vector<const Loops*> other_loops() {
  std::vector<const Loops*> loops = all_loops();
  std::erase(loops, &best_loops());
  return loops;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance); // a machine may have one instruction set only
INSTANTIATE_TEST_SUITE_P(All, Conformance, ::testing::ValuesIn(other_loops()),
                         [](const auto& loops) { return std::string(loops.param->name); });

} // namespace
} // namespace triax::kernels_cpu
