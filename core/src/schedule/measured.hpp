// One step as the executor saw it beside the same step as the simulator has it, and what lies between them.
//
// Threads: values and pure functions. Ownership: values. Blocking: never. Errors: compare() throws Error, naming rank
// and position, where the passes are not those of the programs.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "schedule/timeline.hpp"

namespace triax::schedule {

struct MeasuredPass {
  Span span;            // in ms of its machine's clock
  double waited_ms = 0; // before it, for transfers that were not there
};

/// By pipeline rank, in the order in which they ran.
using MeasuredRows = std::vector<std::vector<MeasuredPass>>;

/// Where a rank's time went, in ms, from the start of its first pass to the end of its last.
struct Shortfall {
  double measured = 0;
  double even = 0;        // as simulated, with stages that all take the same: the mean of the measured ones
  double slow_stages = 0; // as simulated with each stage's own times, less `even`
  double slow_passes = 0; // passes that took longer than is usual on their stage
  double late = 0;        // waits for transfers, less the bubble that the simulator has there
  double overhead = 0;    // between two passes, and not a wait for transfers
  /// `even` and what follows it add up to `measured`.
};

struct Comparison {
  std::vector<PassTimes> times; // by stage: what is usual there, the median of its passes
  Timeline measured, planned;   // both from 0; planned: with these times, and transfers that take none
  std::vector<Shortfall> ranks; // each by its own clock
  /// Of ranks with several clocks: how exactly the rows of `measured` lie above one another (clocks.hpp), in ms.
  std::optional<double> clocks_within = std::nullopt;
};

/// `clock_of`: by rank, which of the machines' clocks its times are of, from 0; empty: all of one.
Comparison compare(std::span<const Program> programs, const MeasuredRows& rows, const PipelineShape& shape,
                   const std::vector<int>& clock_of = {});

} // namespace triax::schedule
