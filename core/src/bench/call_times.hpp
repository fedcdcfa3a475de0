// SPDX-License-Identifier: Apache-2.0
// Times of calls that are repeated, each one by itself: a clock is read once per call. Nothing is allocated while calls
// are timed.
//
// Threads: one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "triax/device.hpp"

namespace triax::bench {

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// The durations of the latest calls, at most 2^18.
class CallTimes {
 public:
  CallTimes() : seconds_(kCapacity) {}

  void add(float seconds) noexcept { seconds_[count_++ % kCapacity] = seconds; }
  void clear() noexcept { count_ = 0; }
  /// Sorts the durations, so that quantile() can be called until the next add().
  void sort() noexcept { std::sort(seconds_.begin(), seconds_.begin() + static_cast<std::ptrdiff_t>(size())); }
  /// A quantile of the sorted durations; 0 if there are none. `share`: 0 is the smallest, 1 the largest.
  double quantile(double share) const noexcept {
    if (size() == 0) return 0;
    return static_cast<double>(
        seconds_[static_cast<std::size_t>(std::lround(share * static_cast<double>(size() - 1)))]);
  }

 private:
  static constexpr std::size_t kCapacity = std::size_t{1} << 18;
  std::size_t size() const noexcept { return std::min(count_, kCapacity); }

  std::vector<float> seconds_;
  std::size_t count_ = 0;
};

/// Mean duration of `calls` calls in seconds.
template <class Call>
double time_calls(std::int64_t calls, CallTimes& times, Call call) {
  const Clock::time_point begin = Clock::now();
  Clock::time_point last = begin;
  for (std::int64_t i = 0; i < calls; ++i) {
    call();
    const Clock::time_point now = Clock::now();
    times.add(static_cast<float>(seconds_between(last, now)));
    last = now;
  }
  return seconds_between(begin, last) / static_cast<double>(calls);
}

/// The time that time_calls() adds to each call on this machine, in seconds.
double loop_overhead_s();

} // namespace triax::bench
