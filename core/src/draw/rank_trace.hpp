// SPDX-License-Identifier: Apache-2.0
// One step of a rank as trace events: a track of computing, one of waits, and tracks of communication by axis.
//
// Threads: pure functions. Ownership: borrows the timeline.
#pragma once

#include <string>

#include "report/timeline_file.hpp"

namespace triax::draw {

class TraceEvents;

struct RankTrace {
  std::string name;                               // "rank 5: pipeline 1, data 0, tensor 1"
  const report::RankTimeline* timeline = nullptr; // times of the rank's clock
  double shift = 0;                               // ms to add to these times
};

/// Adds the rank as process number `process`. A call that was posted before the previous call on its track completed is
/// drawn from that completion on; its arguments have the time of the post.
void add_rank(const RankTrace& rank, int process, TraceEvents& events);

} // namespace triax::draw
