// SPDX-License-Identifier: Apache-2.0
#include "idle_strategy.hpp"

#include <poll.h>

#include <chrono>
#include <ctime>

#include "triax/error.hpp"

namespace triax::comm_ucx {

namespace {

using namespace std::chrono_literals;

constexpr auto kSpinTime = 500us;
constexpr std::int64_t kComputingNs = 25'000; // between two calls: a kernel set polls between operations
constexpr int kSleepMs = 1;

std::int64_t processor_time_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

} // namespace

void IdleStrategy::start(Wait wait, ucp_worker_h worker) {
  wait_ = wait;
  worker_ = worker;
  if (wait != Wait::event) return;
  const ucs_status_t status = ucp_worker_get_efd(worker, &file_);
  if (status != UCS_OK) {
    throw triax::Error(triax::text("UCX has no descriptor to wait on: {}", ucs_status_string(status)),
                       "comm-ucx, wait = \"event\"", "use wait = \"yield\"");
  }
}

void IdleStrategy::idle() noexcept {
  if (wait_ != Wait::event) return;
  const std::int64_t computed = processor_time_ns();
  const auto now = triax::Clock::now();
  if (idle_since_ == triax::Clock::time_point{} || computed - computed_ns_ > kComputingNs) {
    idle_since_ = now;
  } else if (now - idle_since_ > kSpinTime) {
    sleep();
  }
  computed_ns_ = processor_time_ns();
}

void IdleStrategy::sleep() noexcept {
  if (ucp_worker_arm(worker_) != UCS_OK) return; // busy: there are events to process
  pollfd waited{file_, POLLIN, 0};
  ::poll(&waited, 1, kSleepMs);
}

} // namespace triax::comm_ucx
