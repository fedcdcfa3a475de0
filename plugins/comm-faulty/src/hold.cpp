// SPDX-License-Identifier: Apache-2.0
#include "hold.hpp"

#include <unistd.h>

#include <algorithm>

namespace triax::comm_faulty {

void Hold::start(Until until, std::uint64_t number, Clock::duration time) noexcept {
  until_ = until;
  number_ = number;
  time_ = time;
  is_released_ = has_call_ = is_timed_ = false;
  set_queued();
}

void Hold::set_call(const Event& call) noexcept {
  call_ = call;
  has_call_ = true;
}

bool Hold::advance() noexcept {
  while (until_ == Until::never) ::pause();
  if (!may_begin()) return false;
  shared_.newest_begun = std::max(shared_.newest_begun, number_);
  finish();
  return true;
}

bool Hold::may_begin() noexcept {
  // is_over comes before call_.fired(): the state of the call's event is freed with the communicator.
  if (is_released_ || shared_.is_over.load(std::memory_order_acquire) || (has_call_ && call_.fired())) return true;
  if (until_ == Until::now) return true;
  if (until_ == Until::aborted) return false;
  if (until_ == Until::overtaken && shared_.newest_begun > number_) return true;
  const Clock::time_point now = Clock::now();
  if (!is_timed_) due_ = now + time_;
  is_timed_ = true;
  return now >= due_;
}

} // namespace triax::comm_faulty
