// SPDX-License-Identifier: Apache-2.0
#include "plan/shape_schedules.hpp"

#include <algorithm>

#include "plugin/call_guard.hpp"
#include "schedule/verify.hpp"
#include "triax/error.hpp"

namespace triax::plan {

ScheduleTable::ScheduleTable(const SearchRequest& request, const Model& model, Log& log)
    : request_(request), model_(model) {
  for (const config::PluginChoice& choice : request.schedules)
    schedulers_.push_back(
        plugin::create<Scheduler>(*choice.library, {choice.options, log, layout_, 0, 1}, choice.folders));
}

bool ScheduleTable::supports(int schedule, const PipelineShape& shape) {
  const auto [found, is_new] = supported_.emplace(key_of(schedule, shape), false);
  if (!is_new) return found->second;
  const auto at = static_cast<std::size_t>(schedule);
  found->second = plugin::guarded_call(request_.schedules[at].name, "supports",
                                       [&] { return schedulers_[at]->supports(shape).empty(); }) &&
                  executor::check_split(model_, shape.stages(), {}).empty();
  return found->second;
}

const StageMapping& ScheduleTable::mapping(int schedule, const PipelineShape& shape) {
  PipelineShape shortest = shape;
  shortest.microbatches = std::min(shape.microbatches, shape.pipeline);
  if (!supports(schedule, shortest)) shortest = cut(schedule, shape).longer;
  const auto [found, is_new] = mappings_.emplace(key_of(schedule, shortest), StageMapping{});
  StageMapping& out = found->second;
  if (!is_new) return out;
  const cost::PostedRows& of = rows(schedule, shortest);
  out.even = executor::split_layers(model_, shape.stages(), {});
  out.stage_rank = of.stage_rank;
  out.splits_backward = of.splits_backward;
  out.first_stage.assign(static_cast<std::size_t>(shape.pipeline), shape.stages());
  for (int stage = shape.stages() - 1; stage >= 0; --stage)
    out.first_stage.at(static_cast<std::size_t>(of.stage_rank.at(static_cast<std::size_t>(stage)))) = stage;
  return out;
}

Schedule ScheduleTable::schedule(int schedule, const PipelineShape& shape) const {
  const auto at = static_cast<std::size_t>(schedule);
  const std::string& name = request_.schedules[at].name;
  Schedule out = plugin::guarded_call(
      name, "rows", [&] { return schedulers_[at]->rows(shape); }, plugin::CallKind::slow_call);
  const std::vector<schedule::Violation> violations = schedule::verify(out, shape);
  if (!violations.empty())
    throw Error(text("its schedule of p = {}, v = {}, m = {} is invalid: {}", shape.pipeline, shape.chunks,
                     shape.microbatches, violations.front().reason()),
                name, "name another scheduler with --fix schedule=NAME");
  return out;
}

const cost::PostedRows& ScheduleTable::rows(int schedule, const PipelineShape& shape) {
  const ShapeKey key = key_of(schedule, shape);
  if (const auto found = rows_.find(key); found != rows_.end()) return found->second;
  return rows_.emplace(key, cost::PostedRows(this->schedule(schedule, shape), shape)).first->second;
}

cost::CutShapes ScheduleTable::cut(int schedule, const PipelineShape& shape) {
  const cost::CutShapes out = cost::cut_shapes(shape);
  if (out.periods == 0 ||
      (supports(schedule, out.longer) && supports(schedule, out.shorter) && supports(schedule, out.shortest)))
    return out;
  return {shape, shape, shape, 0};
}

} // namespace triax::plan
