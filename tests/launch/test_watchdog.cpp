// SPDX-License-Identifier: Apache-2.0
// The watchdog: times without progress, their limits, and the end of a process whose rank does not return.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <future>
#include <thread>

#include "launch/watchdog.hpp"

namespace triax::launch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(StallClock, CountsTimeWithoutProgress) {
  StallClock clock;
  const Clock::time_point start{milliseconds(1000)};
  clock.sample(7, start);
  EXPECT_EQ(clock.stalled_s(), 0);
  clock.sample(7, start + milliseconds(100));
  clock.sample(7, start + milliseconds(350));
  EXPECT_EQ(clock.stalled_s(), 0.35);
  clock.sample(8, start + milliseconds(400));
  EXPECT_EQ(clock.stalled_s(), 0);
}

TEST(StallClock, AProcessThatWasStoppedIsNotStuck) {
  StallClock clock;
  const Clock::time_point start{milliseconds(1000)};
  clock.sample(7, start);
  clock.sample(7, start + milliseconds(1'000'000));
  EXPECT_EQ(clock.stalled_s(), 0.5);
}

class WatchdogTest : public ::testing::Test {
 protected:
  std::future<Error> report_of(Watchdog& watchdog, ObservedRank& rank) {
    auto reported = std::make_shared<std::promise<Error>>();
    watching_.emplace(watchdog, rank, [reported](const Error& error) { reported->set_value(error); });
    return reported->get_future();
  }
  os::StopSignals signals_;
  ObservedRank rank_{3};
  const RankActivity::Binding bound_{rank_.activity()}; // this thread is the rank
  std::optional<Watchdog::Watching> watching_;
};

constexpr auto kNever = milliseconds(700); // several periods of the watchdog

TEST_F(WatchdogTest, ACallThatDoesNotReturnIsReportedOnce) {
  Watchdog watchdog({.stall_timeout_s = 0.3, .signals = signals_});
  const ActivityScope call(ActivityScope::Kind::plugin_call, "step", "optim-x");
  EXPECT_FALSE(rank_.progress().is_stuck);
  const Error error = report_of(watchdog, rank_).get();
  EXPECT_THAT(error.message(), MatchesRegex("no progress for 0\\.[3-9] s: in step\\(\\) of plugin \"optim-x\""));
  EXPECT_THAT(error.hint(), HasSubstr("train.stall_timeout_s = 0.3"));
  EXPECT_TRUE(rank_.progress().is_stuck);
  EXPECT_GE(rank_.progress().stalled_s, 0.3);
  std::this_thread::sleep_for(kNever); // a second report would throw in set_value()
  watching_.reset();
}

TEST_F(WatchdogTest, ProgressRestartsTheTimeOfACall) {
  const ActivityScope call(ActivityScope::Kind::plugin_call, "step", "optim-x");
  const Clock::time_point start{milliseconds(1000)};
  rank_.sample(start);
  rank_.sample(start + milliseconds(300));
  EXPECT_DOUBLE_EQ(rank_.stalled_s(), 0.3);
  rank_.activity().make_progress();
  rank_.sample(start + milliseconds(400));
  EXPECT_EQ(rank_.stalled_s(), 0);
}

TEST_F(WatchdogTest, ThePositionOfARankThatHasTrainedIsItsEnd) {
  rank_.set_finished(10);
  EXPECT_EQ(rank_.position_and_call(), "finished after step 10");
  rank_.set_rank(nullptr);
  EXPECT_EQ(rank_.position(), "finished after step 10");
}

TEST_F(WatchdogTest, TheTimeOfAWaitEndsWithIt) {
  const Clock::time_point start{milliseconds(1000)};
  {
    const PolledWait wait;
    rank_.sample(start);
    wait.poll();
    rank_.sample(start + milliseconds(300));
    EXPECT_DOUBLE_EQ(rank_.progress().waiting_s, 0.3);
    wait.advance();
    rank_.sample(start + milliseconds(400));
    EXPECT_EQ(rank_.progress().waiting_s, 0);
    rank_.sample(start + milliseconds(500));
    EXPECT_DOUBLE_EQ(rank_.progress().waiting_s, 0.1);
  }
  const PolledWait next;
  rank_.sample(start + milliseconds(600));
  EXPECT_EQ(rank_.progress().waiting_s, 0);
}

TEST_F(WatchdogTest, ARankThatMakesProgressIsNotReported) {
  constexpr double kLimit = 1; // hundreds of progress intervals: tolerates a busy machine
  Watchdog watchdog({.stall_timeout_s = kLimit, .signals = signals_});
  const std::future<Error> report = report_of(watchdog, rank_);
  const ActivityScope call(ActivityScope::Kind::plugin_call, "step", "optim-x");
  bool is_reported = false;
  for (const Deadline end = deadline_in(2.5 * kLimit); !is_reported && Clock::now() < end;) {
    is_reported = report.wait_for(milliseconds(5)) == std::future_status::ready;
    rank_.activity().make_progress();
  }
  EXPECT_FALSE(is_reported);
  watching_.reset();
}

TEST_F(WatchdogTest, AWaitWithADeadlineOfItsOwnIsNotTheOneToBlame) {
  Watchdog watchdog({.stall_timeout_s = 0.1, .signals = signals_});
  const std::future<Error> report = report_of(watchdog, rank_);
  const WaitScope wait("join", Deadline::max(), "comm-x");
  EXPECT_EQ(report.wait_for(kNever), std::future_status::timeout);
  EXPECT_EQ(rank_.progress().stalled_s, 0);
  EXPECT_THAT(rank_.position_and_call(), MatchesRegex("starting(, in join\\(\\) of plugin \"comm-x\" for [0-9.]+ s)?"));
  watching_.reset();
}

TEST_F(WatchdogTest, AfterASignalTheTimeIsShorter) {
  Watchdog watchdog({.stall_timeout_s = 1e6, .signals = signals_, .stall_after_signal_s = 0.2});
  const ActivityScope call(ActivityScope::Kind::plugin_call, "step", "optim-x");
  std::future<Error> report = report_of(watchdog, rank_);
  EXPECT_EQ(report.wait_for(kNever), std::future_status::timeout);
  signals_.ask(SIGTERM);
  EXPECT_THAT(report.get().message(),
              MatchesRegex("no progress for [0-9.]+ s, and SIGTERM asks to stop: in step\\(\\) of plugin \"optim-x\""));
  watching_.reset();
}

TEST_F(WatchdogTest, EndsAProcessIfItsRankDoesNotEndAfterAFailure) {
  std::promise<void> ended;
  bool is_first = true;
  Watchdog watchdog({.stall_timeout_s = 0.1, .signals = signals_, .end_process = [&] {
                       if (std::exchange(is_first, false)) ended.set_value();
                     }});
  const ActivityScope call(ActivityScope::Kind::plugin_call, "step", "optim-x");
  std::future<void> end = ended.get_future();
  report_of(watchdog, rank_).get();
  EXPECT_EQ(end.wait_for(kNever), std::future_status::timeout); // the run has not failed yet
  watchdog.expect_end();
  end.wait();
  watching_.reset();
}

} // namespace
} // namespace triax::launch
