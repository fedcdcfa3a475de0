// SPDX-License-Identifier: Apache-2.0
#include "triax/poll_pause.hpp"

#include <sched.h>

#include <atomic>
#include <ctime>
#include <thread>

namespace triax {

namespace {

constexpr int kYields = 16; // a few microseconds: a peer that is about to answer is not slept over
constexpr std::timespec kSleep{0, 20'000};

std::atomic<int>& waiting_threads() noexcept {
  static std::atomic<int> count = 0;
  return count;
}
thread_local int depth_of_waits = 0;

int cores() noexcept {
  static const int count = static_cast<int>(std::thread::hardware_concurrency());
  return count;
}

} // namespace

PollPause::PollPause() noexcept {
  if (depth_of_waits++ == 0) waiting_threads().fetch_add(1, std::memory_order_relaxed);
}

PollPause::~PollPause() {
  if (--depth_of_waits == 0) waiting_threads().fetch_sub(1, std::memory_order_relaxed);
}

void PollPause::idle() noexcept {
  if (++idle_polls_ > kYields && waiting_threads().load(std::memory_order_relaxed) > cores()) {
    nanosleep(&kSleep, nullptr);
  } else {
    sched_yield();
  }
}

} // namespace triax
