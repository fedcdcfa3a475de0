// SPDX-License-Identifier: Apache-2.0
// Measures how long a rank has made no progress, by polling.
//
// The caller passes the time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "triax/device.hpp"

namespace triax::launch {

class StallClock {
 public:
  /// Longest time that counts between two calls of sample(): a process that was stopped meanwhile is not stuck.
  static constexpr std::chrono::milliseconds kMaxGap{500};

  /// `progress`: RankActivity::progress().
  void sample(std::uint64_t progress, Clock::time_point now) {
    stalled_ =
        progress != progress_ ? Clock::duration{} : stalled_ + std::min<Clock::duration>(now - sampled_, kMaxGap);
    progress_ = progress;
    sampled_ = now;
  }
  double stalled_s() const { return std::chrono::duration<double>(stalled_).count(); }

 private:
  std::uint64_t progress_ = ~std::uint64_t{0}; // no value seen yet
  Clock::time_point sampled_;
  Clock::duration stalled_{};
};

} // namespace triax::launch
