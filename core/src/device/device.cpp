// SPDX-License-Identifier: Apache-2.0
// The parts that all devices share: names, deadlines, and the wait that runs the progress loop.
#include "triax/device.hpp"

#include <sched.h>

#include "base/wait_deadline.hpp"
#include "device/timeout_error.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax {

namespace {

std::string place_of(ActionId action) {
  return action == kNoAction ? std::string() : text("action {}", action);
}

} // namespace

std::string_view name_of(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::host:
      return "host";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::sim:
      return "sim";
  }
  return "?";
}

Deadline deadline_in(double seconds) {
  constexpr double kForever = 1e9; // 30 years; more would overflow the clock's nanoseconds
  if (!(seconds < kForever)) return Deadline::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Stream::~Stream() = default;
ProgressSource::~ProgressSource() = default;
Device::~Device() = default;

void Device::wait(const Event& event, Deadline deadline) {
  wait(Work{event, kNoAction}, deadline);
}

void Device::wait(const Work& work, Deadline deadline) {
  const auto is_over = [&] {
    const bool fired = work.event.fired();
    if (fired && work.event.failure()) throw Error(work.event.failure(), place_of(work.action));
    if (abort_flag_.raised()) throw Error(abort_flag_.reason(), place_of(work.action));
    return fired;
  };
  if (is_over()) return;
  const PolledWait wait;
  WaitDeadline until(deadline);
  while (true) {
    wait.poll();
    if (progress()) {
      wait.advance();
    } else {
      if (until.passed()) throw_timeout(place_of(work.action));
      sched_yield();
    }
    if (is_over()) return;
  }
}

} // namespace triax
