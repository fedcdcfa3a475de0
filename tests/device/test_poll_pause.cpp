// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <latch>
#include <thread>
#include <vector>

#include "triax/poll_pause.hpp"

namespace triax {
namespace {

constexpr int kPolls = 100;

/// How often the calling thread slept in that many polls of a wait.
long sleeps_of_a_wait(int polls) {
  PollPause pause;
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  for (int i = 0; i < polls; ++i) pause.idle();
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
  return static_cast<int>(std::thread::hardware_concurrency());
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

TEST(PollPause, SleepsInALongWait) {
  EXPECT_GE(sleeps_of_a_wait(11'000), 500);
}

TEST(PollPause, YieldsAtFirst) {
  EXPECT_LT(sleeps_beside(cores(), 1, 8), 4);
}

} // namespace
} // namespace triax
