// SPDX-License-Identifier: Apache-2.0
// Events and the rank's abort flag.
#include <string>

#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax {

bool AbortFlag::raise(std::string_view reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (raised()) return false;
  try {
    reason_ = reason;
  } catch (...) { // out of memory: setting the flag without a reason is better than not setting it
    reason_.clear();
  }
  raised_.store(true, std::memory_order_seq_cst);
  return true;
}

const std::string& AbortFlag::reason() const noexcept {
  static const std::string kNone;
  return raised() ? reason_ : kNone;
}

void AbortFlag::check() const {
  if (raised()) throw Error(reason());
}

EventState::~EventState() = default;
HostTask::~HostTask() = default;

Event HostEvent::arm() {
  TRIAX_REQUIRE(idle(), "a host event was armed again before generation {} fired", armed_);
  return {this, ++armed_};
}

void HostEvent::fire() noexcept {
  fired_.store(armed_, std::memory_order_release);
}

void HostEvent::fail(std::string_view why) noexcept {
  try {
    why_ = why;
  } catch (...) { // out of memory: a failure without text is better than no failure
    why_.clear();
  }
  failed_ = armed_;
  fire();
}

const char* HostEvent::failure(std::uint64_t generation) const noexcept {
  return failed_ != 0 && failed_ == generation ? why_.c_str() : nullptr;
}

} // namespace triax
