// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstdlib>
#include <latch>
#include <thread>
#include <vector>

#include "os/cpu_quota.hpp"
#include "triax/poll_pause.hpp"

namespace triax {
namespace {

constexpr int kPolls = 100;

/// How often the calling thread slept in that many polls of a wait, of which each `progressing`th progresses.
long sleeps_of_a_wait(int polls, int progressing = 0) {
  PollPause pause;
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  for (int i = 1; i <= polls; ++i) pause.after_poll(progressing > 0 && i % progressing == 0);
  getrusage(RUSAGE_THREAD, &after);
  return after.ru_nvcsw - before.ru_nvcsw; // giving up the core counts as involuntary
}

/// The same in a process with other threads that have waited.
long sleeps_beside(int others, int waits_of_each, int polls = kPolls) {
  std::latch waiting(others), done(1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < others; ++i) {
    threads.emplace_back([&] {
      const std::vector<PollPause> pauses(static_cast<std::size_t>(waits_of_each));
      waiting.count_down();
      done.wait();
    });
  }
  waiting.wait();
  const long sleeps = sleeps_of_a_wait(polls);
  done.count_down();
  return sleeps;
}

int cores() {
  return os::available_cores();
}

TEST(PollPause, SleepsIfMoreThreadsHaveWaitedThanThereAreCores) {
  EXPECT_GE(sleeps_beside(cores(), 1), kPolls / 2);
}

TEST(PollPause, YieldsIfNoMoreThreadsHaveWaitedThanThereAreCores) {
  EXPECT_LT(sleeps_beside(cores() - 1, 1), kPolls / 2);
}

TEST(PollPause, CountsAThreadOnceHoweverManyItsWaits) {
  EXPECT_LT(sleeps_beside(cores() - 1, 4), kPolls / 2);
}

/// In another process, because a process reads the number of its cores once. Exit status 0 if it sleeps.
[[noreturn]] void wait_on_one_core() {
  cpu_set_t all, first;
  if (sched_getaffinity(0, sizeof all, &all) != 0) std::exit(2);
  int core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  CPU_ZERO(&first);
  CPU_SET(core, &first);
  if (sched_setaffinity(0, sizeof first, &first) != 0) std::exit(2);
  std::exit(sleeps_beside(1, 1) >= kPolls / 2 ? 0 : 1);
}

TEST(PollPauseDeathTest, CountsTheCoresThatTheProcessMayUse) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe"; // starts a new process
  EXPECT_EXIT(wait_on_one_core(), testing::ExitedWithCode(0), "");
}

TEST(PollPause, SleepsInALongWait) {
  EXPECT_GE(sleeps_of_a_wait(11'000), 500);
}

TEST(PollPause, YieldsAgainAfterProgress) {
  EXPECT_LT(sleeps_of_a_wait(11'000, 10), 500);
}

TEST(PollPause, YieldsAtFirst) {
  EXPECT_LT(sleeps_beside(cores(), 1, 8), 4);
}

} // namespace
} // namespace triax
