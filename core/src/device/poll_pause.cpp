// SPDX-License-Identifier: Apache-2.0
#include "triax/poll_pause.hpp"

#include <sched.h>

#include <atomic>
#include <ctime>
#include <thread>

namespace triax {

namespace {

constexpr int kYields = 16; // a peer may be about to answer
// 6 to 7 ms on an AMD EPYC (Zen 3, a virtual machine), where a sleep took 0.12 to 0.17 ms: a fortieth of the wait.
constexpr int kLongYields = 10'000;
constexpr std::timespec kSleep{0, 20'000}; // Linux adds 50 us and the time to wake up

/// Living threads that have waited.
std::atomic<int> ranks = 0;

struct CountedThread {
  CountedThread() noexcept { ranks.fetch_add(1, std::memory_order_relaxed); }
  ~CountedThread() { ranks.fetch_sub(1, std::memory_order_relaxed); }
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;
};

int cores() noexcept {
  static const int count = static_cast<int>(std::thread::hardware_concurrency());
  return count;
}

} // namespace

PollPause::PollPause() noexcept {
  static thread_local const CountedThread counted;
}

void PollPause::idle() noexcept {
  const bool more_than_cores = ranks.load(std::memory_order_relaxed) > cores();
  if (idle_polls_ < (more_than_cores ? kYields : kLongYields)) {
    ++idle_polls_;
    sched_yield();
  } else {
    nanosleep(&kSleep, nullptr);
  }
}

} // namespace triax
