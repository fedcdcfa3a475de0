// What all devices share: names, deadlines, the wait that pumps.
#include "triax/device.hpp"

#include <sched.h>

#include "device/late.hpp"
#include "triax/error.hpp"

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
  while (true) {
    const bool fired = work.event.fired();
    if (fired && work.event.failure()) throw Error(work.event.failure(), place_of(work.action));
    if (interrupt_.raised()) throw Error(interrupt_.reason(), place_of(work.action));
    if (fired) return;
    if (progress()) continue;
    if (Clock::now() >= deadline) throw_late(place_of(work.action));
    sched_yield();
  }
}

} // namespace triax
