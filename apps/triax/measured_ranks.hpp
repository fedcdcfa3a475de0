// SPDX-License-Identifier: Apache-2.0
// The timelines that the ranks of a run have written, by pipeline group and all together on one clock.
//
// Threads: one. Ownership: values. Blocking: reads files of the run's folder. Errors: Error where a timeline is
// missing, or is one of another run or step.
#pragma once

#include <deque>
#include <vector>

#include "proved_schedule.hpp"
#include "report/rank_trace.hpp"
#include "report/timeline_file.hpp"
#include "schedule/measured.hpp"

namespace triax::app {

/// The ranks of a pipeline, by pipeline rank.
struct MeasuredGroup {
  std::vector<int> ranks; // of the run
  std::vector<report::RankTimeline> timelines;
  std::vector<report::Machine> machines; // different ones
  std::vector<int> clock_of;             // by pipeline rank, which of `machines`
};
/// The pipeline group of a rank.
MeasuredGroup read_group(const ScheduleSource& source, int rank);

/// Throws Error naming the run's folder where the passes are not those of the programs.
schedule::Comparison compare(const MeasuredGroup& group, const ScheduleSource& source, const ProvedSchedule& proved);

struct MeasuredRanks {
  std::deque<report::RankTimeline> timelines; // which the traces refer to
  std::vector<report::RankTrace> traces;      // by rank of the run
};
/// All ranks, on the clock of `first`'s comparison. A machine that `first` has no rank on is aligned through the
/// pipeline group that has one there; one that shares no machine with those before starts its first pass with them.
MeasuredRanks read_ranks(const ScheduleSource& source, const ProvedSchedule& proved, const MeasuredGroup& first,
                         const schedule::Comparison& comparison);

} // namespace triax::app
