// A schedule as text, the way papers draw one: a row of boxes per rank over unit slots of time.
//
//   slot    0              5
//   rank 0 |F0|F1|     |B0   |  |B1   |
//   rank 1    |F0|B0   |F1|B1   |
//
// Threads: pure functions. Ownership: values. Blocking: never. As wide as it is long; no colour.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "triax/scheduler.hpp"

namespace triax::report {

/// The drawing, and below it the idle slots and the peak of microbatches in flight of each rank. The stage stands in
/// the boxes unless stage and rank are the same number. `ends`: when each action ends (schedule/timing.hpp).
std::string schedule_table(const Schedule& schedule, const std::vector<std::vector<std::int64_t>>& ends);

} // namespace triax::report
