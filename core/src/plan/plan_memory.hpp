// SPDX-License-Identifier: Apache-2.0
// Memory of a plan to the byte: the dry run of preflight, for the pipeline ranks that can need most and the first and
// last of their tensor ranks, under programs of few microbatches. The slots of a stage grow by the same number from
// period to period, or not at all, so those of all microbatches follow.
//
// Threads: the main thread. Ownership: borrows the request, tables and log. Errors: Error of plugins.
#pragma once

#include <cstdint>
#include <map>
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
  Answer of(const TrainingPlan& plan, const Split& split, std::uint64_t limit);

 private:
  /// Rows, and how programs add to them.
  using ProgramsKey = std::tuple<int, int, int, int, schedule::Boundaries, schedule::Sharding>;
  static ProgramsKey key_of(const config::RunConfig& run, int schedule, const PipelineShape& shape);
  struct PlannedPrograms {
    train::Programs programs;
    std::vector<int> ranks; // the pipeline ranks that can need most
  };
  const PlannedPrograms& programs_of(const config::RunConfig& run, const Layout& layout, int schedule);
  train::Programs extended(const config::RunConfig& run, const Layout& layout, int schedule,
                           const PipelineShape& shape);
  const train::Programs& lowered(const config::RunConfig& run, const Layout& layout, int schedule,
                                 const PipelineShape& shape);

  const train::ProgramSlots& counted(const config::RunConfig& run, int schedule, const PipelineShape& shape);

  const SearchRequest& request_;
  LayerTable& layers_;
  ScheduleTable& schedules_;
  PlanAcceptance& acceptance_;
  Log& log_;
  std::map<ProgramsKey, train::Programs> lowered_;
  std::map<ProgramsKey, train::ProgramSlots> counted_;
  std::map<std::pair<ProgramsKey, Split>, PlannedPrograms> planned_;
};

} // namespace triax::plan
