// SPDX-License-Identifier: Apache-2.0
// What a rank did in a step as trace events: a track of what it computed, one of its waits, and tracks of what it
// communicated, by axis.
//
// Threads: pure functions. Ownership: the timeline is borrowed. Blocking: never. Errors: none.
#pragma once

#include <string>

#include "report/timeline_file.hpp"

namespace triax::report {

class TraceEvents;

struct RankTrace {
  std::string name;                       // "rank 5: pipeline 1, data 0, tensor 1"
  const RankTimeline* timeline = nullptr; // times of its own clock
  double shift = 0;                       // ms to be added to them
};

/// As process number `process`. Calls that were posted before the one ahead of them had completed start where that one
/// ended; their arguments have the time of the post.
void add_rank(const RankTrace& rank, int process, TraceEvents& events);

} // namespace triax::report
