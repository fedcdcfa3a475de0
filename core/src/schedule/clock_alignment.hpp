// SPDX-License-Identifier: Apache-2.0
// Clock alignment: converts the times of several machines to one clock. Steady clocks of machines start at different
// times. But a pass starts only after the passes it needs on other ranks have ended; forwards give this bound in one
// direction, and backwards in the other. The shift is the middle of the two bounds, as in NTP.
//
// Threads: pure functions. Errors: Error if no such dependency links two clocks in both directions.
#pragma once

#include <vector>

#include "schedule/timeline.hpp"

namespace triax::schedule {

struct Alignment {
  std::vector<double> shift; // by rank, in the unit of the timeline; to be added to its times
  /// Largest possible error of a rank's shift relative to the first clock. If clocks ran at different rates, so that no
  /// shift satisfies all dependencies, the largest amount by which one is violated.
  double within = 0;
};

/// `clock_of`: by rank, the number of its clock, from 0.
Alignment align(const Timeline& timeline, const std::vector<int>& clock_of);

} // namespace triax::schedule
