// SPDX-License-Identifier: Apache-2.0
#include "bench/call_times.hpp"

namespace triax::bench {

double loop_overhead_s() {
  constexpr std::int64_t kCalls = 10'000;
  CallTimes times;
  double least = 1;
  for (int turn = 0; turn < 5; ++turn) least = std::min(least, time_calls(kCalls, times, [] {}));
  return least;
}

} // namespace triax::bench
