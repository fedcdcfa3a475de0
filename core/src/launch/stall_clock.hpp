// SPDX-License-Identifier: Apache-2.0
// How long a rank has made no progress, as somebody sees it who looks from time to time.
//
// Threads: one. Ownership: values. Blocking: never; the caller gives the time. Errors: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "triax/device.hpp"

namespace triax::launch {

class StallClock {
 public:
  /// Between two looks no more than this counts: a process that was stopped meanwhile is not stuck.
  static constexpr std::chrono::milliseconds kMaxGap{500};

  /// `progress` as RankActivity gives it.
  void look(std::uint64_t progress, Clock::time_point now) {
    stalled_ = progress != progress_ ? Clock::duration{} : stalled_ + std::min<Clock::duration>(now - looked_, kMaxGap);
    progress_ = progress;
    looked_ = now;
  }
  double stalled_s() const { return std::chrono::duration<double>(stalled_).count(); }

 private:
  std::uint64_t progress_ = ~std::uint64_t{0}; // none has been seen
  Clock::time_point looked_;
  Clock::duration stalled_{};
};

} // namespace triax::launch
