// SPDX-License-Identifier: Apache-2.0
// Memory of a plan to the byte: the dry run of preflight, for the pipeline ranks that can need most and the first and
// last of their tensor ranks, under programs of few microbatches. The slots of a stage grow by the same number from
// period to period, or not at all, so those of all microbatches follow.
//
// Only the ranks that are planned are lowered. The rank with the largest bound comes first, and most plans that do not
// fit end with it; the slots of all ranks are counted for the others only.
//
// Threads: the main thread. Ownership: borrows the request, tables and log. Errors: Error of plugins.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/layer_table.hpp"
#include "plan/plan_acceptance.hpp"
#include "plan/shape_schedules.hpp"
#include "train/rank_setup.hpp"

namespace triax::plan {

class PlanMemory {
 public:
  PlanMemory(const SearchRequest& request, LayerTable& layers, ScheduleTable& schedules, PlanAcceptance& acceptance,
             Log& log)
      : request_(request), layers_(layers), schedules_(schedules), acceptance_(acceptance), log_(log) {}

  /// The memory of the device of the rank that needs most; above `limit`, of the first rank that needs more.
  struct Answer {
    std::uint64_t bytes = 0;
    Refusals refusals{}; // why plugins refuse the plan; the bytes do not count then
  };
  /// `bounds`: bytes that each pipeline rank needs at least, which decide on the order; empty: unknown.
  Answer of(const TrainingPlan& plan, const Split& split, std::span<const double> bounds, std::uint64_t limit);

 private:
  using RowsKey = std::tuple<int, int, int, int>; // schedule and shape
  /// Rows, and how programs add to them.
  using ProgramsKey = std::tuple<RowsKey, schedule::Boundaries, schedule::Sharding>;
  static RowsKey key_of(int schedule, const PipelineShape& shape) {
    return {schedule, shape.pipeline, shape.chunks, shape.microbatches};
  }
  static ProgramsKey key_of(const config::RunConfig& run, int schedule, const PipelineShape& shape) {
    return {key_of(schedule, shape), train::boundaries(run), train::sharding(run)};
  }
  /// The slots of all ranks, and the shape whose programs have them after Program::with_slots().
  struct PlannedSlots {
    PipelineShape shape;
    train::ProgramSlots slots;
  };
  struct PlannedRun;
  Answer plan_rank(const PlannedRun& planned, int rank, const PipelineShape& shape, const train::ProgramSlots* slots);
  const train::StepRows& rows(int schedule, const PipelineShape& shape);
  const train::Programs& lowered(const PlannedRun& planned, int rank, const PipelineShape& shape);
  train::ProgramSlots counted(const PlannedRun& planned, const PipelineShape& shape);
  PlannedSlots extended(const PlannedRun& planned);
  const PlannedSlots& slots_of(const PlannedRun& planned);
  const std::vector<int>& ranks_of(const PlannedRun& planned, const PlannedSlots& slots);

  const SearchRequest& request_;
  LayerTable& layers_;
  ScheduleTable& schedules_;
  PlanAcceptance& acceptance_;
  Log& log_;
  std::map<RowsKey, train::StepRows> rows_;
  std::map<ProgramsKey, train::Programs> lowered_; // of some ranks; the others are empty
  std::map<ProgramsKey, PlannedSlots> slots_;
  std::map<std::pair<ProgramsKey, Split>, std::vector<int>> ranks_; // that can need most
};

} // namespace triax::plan
