// SPDX-License-Identifier: Apache-2.0
#include "triax/poll_pause.hpp"

#include <sched.h>

#include <atomic>
#include <ctime>

#include "os/cpu_quota.hpp"

namespace triax {

namespace {

constexpr int kYields = 16; // a peer may be about to answer
// On an AMD EPYC (Zen 3, a virtual machine), these take 6 to 7 ms, and a sleep 0.12 to 0.17 ms. So the first sleep
// lengthens a wait by a fortieth at most.
constexpr int kLongYields = 10'000;
constexpr std::timespec kSleep{0, 20'000}; // Linux adds 50 us (timer slack) and the time to wake up

/// Threads that have waited and have not ended.
std::atomic<int> threads = 0;

struct CountedThread {
  CountedThread() noexcept { threads.fetch_add(1, std::memory_order_relaxed); }
  ~CountedThread() { threads.fetch_sub(1, std::memory_order_relaxed); }
  CountedThread(const CountedThread&) = delete;
  CountedThread& operator=(const CountedThread&) = delete;
};

/// Those that the process may use. std::thread::hardware_concurrency() counts all cores of the machine.
int cores() noexcept {
  static const int count = os::available_cores();
  return count;
}

} // namespace

PollPause::PollPause() noexcept {
  static thread_local const CountedThread counted;
  cores(); // reads files, so not in a later poll
}

void PollPause::idle() noexcept {
  const bool more_than_cores = threads.load(std::memory_order_relaxed) > cores();
  if (idle_polls_ < (more_than_cores ? kYields : kLongYields)) {
    ++idle_polls_;
    sched_yield();
  } else {
    nanosleep(&kSleep, nullptr);
  }
}

} // namespace triax
