// A schedule as text, the way papers draw one: a row of boxes per rank over units of time.
//
//   time    0              5
//   rank 0 |F0|F1|     |B0   |  |B1   |
//   rank 1    |F0|B0   |F1|B1   |
//
// Threads: pure functions. Ownership: values. Blocking: never. Errors: Error unless the timeline counts passes. As wide
// as it is long.
#pragma once

#include <string>

#include "schedule/timeline.hpp"

namespace triax::report {

/// The drawing, and below it the idle time and the peak of microbatches in flight of each rank. The stage stands in
/// the boxes unless stage and rank are the same number. `colour`: the boxes have the colours of pictures.
std::string schedule_table(const schedule::Timeline& timeline, bool colour);

} // namespace triax::report
