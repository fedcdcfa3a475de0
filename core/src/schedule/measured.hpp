// SPDX-License-Identifier: Apache-2.0
// Compares a measured step with the same step in the simulator, and attributes the difference.
//
// Threads: values and pure functions. Errors: compare() throws Error with rank and position if the passes are not those
// of the programs.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "schedule/timeline.hpp"

namespace triax::schedule {

struct MeasuredPass {
  Span span;            // in ms of its machine's clock
  double waited_ms = 0; // time that the pass waited for transfers before it started
};

/// By pipeline rank, in running order.
using MeasuredRows = std::vector<std::vector<MeasuredPass>>;

/// The time of a rank, in ms, from the start of its first pass to the end of its last.
struct StepBreakdown {
  double measured = 0;
  double even = 0;        // simulated, if all stages took the same time: the mean
  double slow_stages = 0; // simulated with each stage's own times, minus `even`
  double slow_passes = 0; // passes that took longer than the median of their stage
  double late = 0;        // waits for transfers, minus the bubble that the simulator has on the rank
  double overhead = 0;    // between passes, without waits for transfers
  /// The sum of `even` and the fields after it is `measured`.
};

struct Comparison {
  std::vector<PassTimes> times;     // by stage: the median of its passes
  Timeline measured, simulated;     // both start at 0; simulated with these times and no transfer time
  std::vector<StepBreakdown> ranks; // each by its own clock
  /// With several clocks: uncertainty of the rows of `measured` relative to each other (clock_alignment.hpp), in ms.
  std::optional<double> clocks_within = std::nullopt;
};

/// `clock_of`: by rank, the number of its machine's clock, from 0; empty: all ranks have one clock.
Comparison compare(std::span<const Program> programs, const MeasuredRows& rows, const PipelineShape& shape,
                   const std::vector<int>& clock_of = {});

} // namespace triax::schedule
