// SPDX-License-Identifier: Apache-2.0
// The deadline of a wait that polls, without the time in which the process did not run: stopped (Ctrl-Z, SIGSTOP), or
// on a machine that was suspended. Otherwise every wait would time out as soon as the process continues.
//
// Threads: one. Ownership: value. Blocking: never. Errors: none.
#pragma once

#include <algorithm>
#include <chrono>

#include "triax/device.hpp"

namespace triax {

/// The deadline of a wait, without the time in which the process was stopped.
class WaitDeadline {
 public:
  explicit WaitDeadline(Deadline deadline, Clock::time_point now = Clock::now())
      : deadline_(deadline), last_(now), longest_gap_(std::clamp((deadline - now) / 4, Clock::duration(1), kMaxGap)) {}

  /// To be called at each poll. A gap between two calls that is longer than a second, or a quarter of the whole wait,
  /// counts as no more than that.
  bool passed(Clock::time_point now = Clock::now()) noexcept {
    const Clock::duration gap = now - last_;
    last_ = now;
    if (gap > longest_gap_) stopped_ += gap - longest_gap_;
    return now - stopped_ >= deadline_;
  }
  /// How long a wait that does not poll may sleep until the next call.
  Clock::duration slice() const noexcept {
    return std::min({deadline_ - (last_ - stopped_), longest_gap_ / 2, Clock::duration(kMaxSlice)});
  }

 private:
  static constexpr Clock::duration kMaxGap = std::chrono::seconds(1), kMaxSlice = std::chrono::milliseconds(100);

  const Deadline deadline_;
  Clock::time_point last_;
  const Clock::duration longest_gap_;
  Clock::duration stopped_{};
};

} // namespace triax
