// SPDX-License-Identifier: Apache-2.0
// Running checks: filters, skipped checks, and checks that throw, crash, exit or hang.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "triax/conformance/run.hpp"
#include "triax/rank_activity.hpp"

namespace {

using namespace triax::conformance;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Check check_of(std::function<void(Report&)> run) {
  return {"Some.Check", "C1", [] { return std::string(); }, std::move(run)};
}

TEST(Filter, HasTheRulesOfGoogleTest) {
  EXPECT_TRUE(matches("*", "Abort.Ends"));
  EXPECT_TRUE(matches("Abort.*", "Abort.Ends"));
  EXPECT_TRUE(matches("Join.*:Abort.E?ds", "Abort.Ends"));
  EXPECT_FALSE(matches("Abort", "Abort.Ends"));
  EXPECT_FALSE(matches("*-Abort.*", "Abort.Ends"));
  EXPECT_FALSE(matches("Abort.*-Join.*:*Ends", "Abort.Ends"));
  EXPECT_TRUE(matches("-Join.*", "Abort.Ends"));
}

TEST(Check, PassesWithoutAFailure) {
  const Result result = run_check(check_of([](Report&) {}));
  EXPECT_EQ(result.outcome, Outcome::passed);
  EXPECT_THAT(result.failures, IsEmpty());
}

TEST(Check, ReportsItsFailuresAndWhatItThrows) {
  const auto run = [](Report& report) {
    report.expect(1 + 1 == 2, "not this one");
    report.fail("the first\nof two lines");
    throw std::runtime_error("the second");
  };
  for (const bool here : {false, true}) {
    const Result result = run_check(check_of(run), {.in_this_process = here});
    EXPECT_EQ(result.outcome, Outcome::failed);
    EXPECT_THAT(result.failures, ElementsAre("the first\nof two lines", "the second"));
  }
}

TEST(Check, ReportsTheFirstOfManyFailures) {
  const Result result = run_check(check_of([](Report& report) {
    for (int i = 0; i < 100; ++i) report.fail(triax::text("failure {}", i));
  }));
  EXPECT_EQ(result.failures.size(), 4u);
  EXPECT_EQ(result.failures.back(), "and 97 more");
}

/// What a library prints may be the cause.
TEST(Check, ThatFailsShowsTheLastLineThatItPrinted) {
  const auto prints = [](Report&) { std::fputs("first\nlast\n", stderr); };
  EXPECT_THAT(run_check(check_of(prints)).failures, IsEmpty());
  const Result result = run_check(check_of([&prints](Report& report) {
    prints(report);
    report.fail("a value is wrong");
  }));
  EXPECT_THAT(result.failures, ElementsAre("a value is wrong", "it printed: last"));
}

TEST(Check, ThatIsSkippedDoesNotRun) {
  Check check = check_of([](Report& report) { report.fail("it ran"); });
  check.skip_reason = [] { return std::string("no network"); };
  const Result result = run_check(check);
  EXPECT_EQ(result.outcome, Outcome::skipped);
  EXPECT_EQ(result.skip_reason, "no network");
}

#ifndef __SANITIZE_ADDRESS__ // it reports the signal itself
TEST(Check, ThatCrashesIsReportedWithTheCallsOfItsRanks) {
  const Result result = run_check(check_of([](Report& report) {
    const triax::RankActivity::Binding bound(report.activity(2));
    const triax::ActivityScope scope(triax::RankActivity::Kind::plugin_call, "all_gather");
    std::puts("about to crash");
    std::fflush(stdout);
    std::raise(SIGSEGV);
  }));
  ASSERT_EQ(result.failures.size(), 1u);
  EXPECT_EQ(result.failures.front(),
            "the check crashed with SIGSEGV (Segmentation fault); rank 2 in all_gather(); it printed: about to crash");
}
#endif

TEST(Check, ThatExitsIsReported) {
  const Result result = run_check(check_of([](Report&) { std::_Exit(3); }));
  EXPECT_THAT(result.failures, ElementsAre("the check called exit(3)"));
}

TEST(Check, ThatHangsIsReported) {
  const Result result = run_check(check_of([](Report& report) {
                                    const triax::RankActivity::Binding bound(report.activity(0));
                                    const triax::ActivityScope scope(triax::RankActivity::Kind::plugin_call, "join");
                                    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
                                  }),
                                  {.timeout_s = 0.2});
  EXPECT_THAT(result.failures, ElementsAre("the check did not return within 0.2 s; rank 0 in join()"));
}

TEST(Check, ThatHangsOnItsOwnThreadIsReportedWithItsCall) {
  const Result result = run_check(check_of([](Report&) {
                                    triax::call_plugin("rows", "sched-mine", [] {
                                      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
                                    });
                                  }),
                                  {.timeout_s = 0.2});
  EXPECT_THAT(result.failures, ElementsAre("the check did not return within 0.2 s; in rows()"));
}

TEST(Run, GoesOnBehindACheckThatDoesNotReturn) {
  Check bad = check_of([](Report&) { std::_Exit(1); }), good = check_of([](Report&) {});
  bad.name = "A.Bad";
  good.name = "A.Good";
  int ended = 0;
  const std::vector<Result> results =
      run_checks({bad, good}, {.filter = "A.*"}, {nullptr, [&ended](const Result&) { ++ended; }});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].outcome, Outcome::failed);
  EXPECT_EQ(results[1].outcome, Outcome::passed);
  EXPECT_EQ(ended, 2);
}

TEST(Run, IsStoppedInACheckWhichHasNoResult) {
  Check good = check_of([](Report&) {}), hangs = check_of([](Report&) {
                                           for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
                                         });
  hangs.name = "Some.Hang";
  bool stop = false;
  const std::vector<Result> results =
      run_checks({good, hangs, good}, {.is_stopped = [&stop] { return stop; }},
                 {[&stop](const Check& check) { stop = check.name == "Some.Hang"; }, nullptr});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, Outcome::passed);
}

} // namespace
