// SPDX-License-Identifier: Apache-2.0
// Time of the passes of a step on a pipeline: the rows of a scheduler, with transfers that hold both ends.
//
// A transfer starts when both ends have posted it. Sends and receives between two groups of passes are one set
// (exchange_programs.hpp), whose messages in one direction share the NIC. A rank continues when its set is complete.
//
// A rank waits for its receive before it computes, so what a backward recomputes is a part of the backward.
//
// A schedule of many microbatches is periodic in p of them. So two short runs are simulated, one p longer than the
// other, and the rest is extrapolated.
//
// Errors: Error if the scheduler refuses the shape, or its rows cannot be completed.
#pragma once

#include <functional>
#include <vector>

#include "cost/stage_link.hpp"
#include "schedule/program.hpp"
#include "triax/scheduler.hpp"

namespace triax::cost {

struct StageTime {
  double forward_s = 0, backward_s = 0; // of a microbatch; I and W have half of a backward each
};

struct PipelineTimes {
  std::vector<StageTime> stages;
  std::vector<LinkTime> links; // one fewer
};

/// End of the last pass, by rank.
using RankEnds = std::vector<double>;

/// The schedule of a shape.
using MakeRows = std::function<Schedule(const PipelineShape&)>;

/// Simulates all microbatches of `shape`.
RankEnds simulate_pipeline(const MakeRows& rows, const PipelineShape& shape, schedule::Boundaries boundaries,
                           const PipelineTimes& times);
/// The same, with at most 5 p microbatches simulated at once.
RankEnds pipeline_ends(const MakeRows& rows, const PipelineShape& shape, schedule::Boundaries boundaries,
                       const PipelineTimes& times);

} // namespace triax::cost
