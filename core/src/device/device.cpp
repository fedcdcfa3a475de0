// SPDX-License-Identifier: Apache-2.0
// The parts that all devices share: names, deadlines, and the wait that runs the progress loop.
#include "triax/device.hpp"

#include "device/timeout_error.hpp"
#include "device/wait_failure.hpp"
#include "triax/error.hpp"
#include "triax/poll_pause.hpp"
#include "triax/rank_activity.hpp"
#include "triax/wait_deadline.hpp"

namespace triax {

namespace {

std::string location_of(ActionId action) {
  return action == kNoAction ? std::string() : text("action {}", action);
}

} // namespace

std::string_view name_of(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::host:
      return "host";
    case DeviceKind::cuda:
      return "CUDA";
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

Stream::Stream(std::string name, Device& device) : name_(std::move(name)), device_(device) {
  device_.streams_.push_back(this);
}

Stream::~Stream() {
  std::erase(device_.streams_, this);
}

void Stream::begin(ActionId action, const char* label) noexcept {
  current_.store(action, std::memory_order_relaxed);
  on_begin(label);
}

void Stream::end(ActionId) noexcept {
  current_.store(kNoAction, std::memory_order_relaxed);
  on_end();
}

void Stream::on_begin(const char*) noexcept {}
void Stream::on_end() noexcept {}

ProgressSource::~ProgressSource() = default;
Device::~Device() = default;

bool Device::progress() noexcept {
  // Indices: a task or a transport may create and destroy streams and sources.
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const ActivityScope call(ActivityScope::Kind::plugin_call, "progress", typeid(*sources_[i]));
    sources_[i]->progress();
  }
  bool moved = false;
  for (std::size_t i = 0; i < streams_.size(); ++i) moved |= streams_[i]->advance();
  return moved;
}

void Device::wait(const Event& event, Deadline deadline) {
  wait(Work{event, kNoAction}, deadline);
}

void Device::wait(const Work& work, Deadline deadline) {
  device::wait_for_others([&] { poll_until(work, deadline); });
}

void Device::poll_until(const Work& work, Deadline deadline) {
  const auto has_ended = [&] {
    const bool fired = work.event.fired();
    if (fired && work.event.failure()) throw Error(work.event.failure(), location_of(work.action));
    if (abort_flag_.raised()) throw Error(abort_flag_.reason(), location_of(work.action));
    return fired;
  };
  if (has_ended()) return;
  const PolledWait wait;
  PollPause pause;
  WaitDeadline until(deadline);
  while (true) {
    wait.poll();
    if (progress()) {
      wait.advance();
      pause.advance();
    } else {
      if (until.passed()) throw_timeout(location_of(work.action));
      pause.idle();
    }
    if (has_ended()) return;
  }
}

} // namespace triax
