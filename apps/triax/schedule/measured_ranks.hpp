// SPDX-License-Identifier: Apache-2.0
// The timelines that the ranks of a run have written: of one pipeline group, or of all ranks on one clock.
//
// Blocking: reads files of the run's folder. Errors: Error if a timeline is missing, or of another run or step.
#pragma once

#include <deque>
#include <vector>

#include "draw/rank_trace.hpp"
#include "report/timeline_file.hpp"
#include "schedule/measured.hpp"
#include "schedule/verified_schedule.hpp"

namespace triax::app {

/// One pipeline group, by pipeline rank.
struct MeasuredGroup {
  std::vector<int> ranks; // numbers in the run
  std::vector<report::RankTimeline> timelines;
  std::vector<report::Machine> machines; // without duplicates
  std::vector<int> clock_of;             // by pipeline rank: index in `machines`
};
/// The pipeline group of a rank.
MeasuredGroup read_group(const ScheduleSource& source, int rank);

/// Throws Error with the run's folder if the passes are not those of the programs.
schedule::Comparison compare(const MeasuredGroup& group, const ScheduleSource& source,
                             const VerifiedSchedule& verified);

struct MeasuredRanks {
  std::deque<report::RankTimeline> timelines; // the traces refer to these
  std::vector<draw::RankTrace> traces;        // by rank of the run
};
/// All ranks, on the clock of the comparison of `first`. A machine without a rank in `first` is aligned through a
/// pipeline group with ranks on both. A group that shares no machine with earlier ones starts its first pass together
/// with them.
MeasuredRanks read_ranks(const ScheduleSource& source, const VerifiedSchedule& verified, const MeasuredGroup& first,
                         const schedule::Comparison& comparison);

} // namespace triax::app
