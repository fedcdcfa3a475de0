// SPDX-License-Identifier: Apache-2.0
// The conformance suite for communicators as GoogleTest's tests "Conformance.<check>", so that each check is an entry
// of ctest, and sanitizers see it: ranks are threads of the test program, or processes that it forks.
#include <gmock/gmock.h>

#include <string>

#include "support/communicator_suite.hpp"
#include "support/loaded_communicator.hpp"
#ifdef TRIAX_COUNTS_ALLOCATIONS
#include "support/count_allocations.hpp"
#endif
#include "triax/conformance/communicator_checks.hpp"
#include "triax/conformance/output.hpp"
#include "triax/conformance/run.hpp"

namespace {

using namespace triax;
using conformance::Check;

conformance::CommunicatorSubject subject_under_test() {
  test::Communication communication = test::under_test();
  conformance::CommunicatorSubject subject;
  subject.name = communication.plugin;
  subject.setup = test::rank_setup(communication);
#ifdef TRIAX_RANKS_ARE_PROCESSES
  subject.setup.processes = true;
#endif
#ifdef TRIAX_COUNTS_ALLOCATIONS
  subject.allocations = test::allocations;
#endif
  subject.traits = subject.setup.backend({subject.setup.options, null_log(), Layout::ptd(1, 1, 1), 0, 1})->traits();
  return subject;
}

class Conformance : public ::testing::Test {
 public:
  explicit Conformance(std::string name) : name_(std::move(name)) {}
  void TestBody() override {
    for (const Check& check : conformance::communicator_checks(subject_under_test())) {
      if (check.name != name_) continue;
      const conformance::Result result = conformance::run_check(check, {.in_this_process = true});
      if (result.outcome == conformance::Outcome::skipped) GTEST_SKIP() << result.skip_reason;
      for (const std::string& failure : result.failures)
        ADD_FAILURE() << failure << "\n" << conformance::clause_text(result.clause);
    }
  }

 private:
  const std::string name_;
};

/// Names do not depend on the subject.
const bool kRegistered = [] {
  for (const Check& check : conformance::communicator_checks({}))
    ::testing::RegisterTest("Conformance", check.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [name = check.name]() -> ::testing::Test* { return new Conformance(name); });
  return true;
}();

} // namespace
