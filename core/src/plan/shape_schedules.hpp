// SPDX-License-Identifier: Apache-2.0
// Schedules of the shapes that a search asks for. Each is made once, and cut to few periods where that is enough.
//
// Threads: the main thread. Ownership: borrows request, model and log. Errors: Error with the scheduler's name,
// also for rows that break a rule of schedules: what reads them does not check.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "cost/posted_pipeline.hpp"
#include "executor/split.hpp"
#include "plan/search_request.hpp"
#include "plugin/loader.hpp"
#include "schedule/violation.hpp"
#include "triax/log.hpp"
#include "triax/model.hpp"
#include "triax/scheduler.hpp"

namespace triax::plan {

/// The properties of a schedule's stages that do not depend on the number of microbatches.
struct StageMapping {
  std::vector<executor::StageLayers> even; // layers of each stage of an even split
  std::vector<int> stage_rank;             // pipeline rank of each stage
  std::vector<int> first_stage;            // lowest stage of each rank
  bool splits_backward = false;
};

class ScheduleTable {
 public:
  ScheduleTable(const SearchRequest& request, const Model& model, Log& log);

  /// The number in the list of schedulers of the request.
  bool supports(int schedule, const PipelineShape& shape);
  /// The shape must be supported; references stay valid.
  const StageMapping& mapping(int schedule, const PipelineShape& shape);
  const cost::PostedRows& rows(int schedule, const PipelineShape& shape);
  Schedule schedule(int schedule, const PipelineShape& shape);
  /// cut_shapes() if the scheduler supports them, or else the whole shape.
  cost::CutShapes cut(int schedule, const PipelineShape& shape);

 private:
  using ShapeKey = std::tuple<int, int, int, int>;
  static ShapeKey key_of(int schedule, const PipelineShape& shape) {
    return {schedule, shape.pipeline, shape.chunks, shape.microbatches};
  }

  Schedule unverified(int schedule, const PipelineShape& shape) const;
  /// Throws Error if there are violations.
  void refuse(int schedule, const PipelineShape& shape, const std::vector<schedule::Violation>& violations) const;

  const SearchRequest& request_;
  const Model& model_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  std::vector<plugin::Instance<Scheduler>> schedulers_;
  std::map<ShapeKey, bool> supported_;
  std::map<ShapeKey, StageMapping> mappings_;
  std::map<ShapeKey, cost::PostedRows> rows_;
  std::set<ShapeKey> verified_; // a scheduler makes equal rows for equal shapes
};

} // namespace triax::plan
