// Times of several machines on one clock. Their steady clocks begin where each was started; but a pass has not begun
// before what it needs from another rank had ended, and forwards and backwards say so in both directions. What is left
// between the two bounds is halved, as NTP does with a question and its answer.
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error if nothing that one clock timed needs what
// another did, in either direction.
#pragma once

#include <vector>

#include "schedule/timeline.hpp"

namespace triax::schedule {

struct Alignment {
  std::vector<double> shift; // by rank, to be added to its times
  /// The most by which a rank may still be too early or too late beside the first's clock; where clocks ran at
  /// different rates, so that no shift fits all transfers, the most by which one is contradicted.
  double within = 0;
};

/// `clock_of`: by rank, which of the clocks its times are of, from 0.
Alignment align(const Timeline& timeline, const std::vector<int>& clock_of);

} // namespace triax::schedule
