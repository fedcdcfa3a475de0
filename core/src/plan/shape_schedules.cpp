// SPDX-License-Identifier: Apache-2.0
#include "plan/shape_schedules.hpp"

#include <algorithm>
#include <utility>

#include "plugin/call_guard.hpp"
#include "schedule/verify.hpp"
#include "triax/error.hpp"

namespace triax::plan {

namespace {

bool splits_backward(const Schedule& schedule) {
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    if (std::ranges::find(schedule.row(rank), ComputeKind::backward_input, &Action::kind) != schedule.row(rank).end())
      return true;
  return false;
}

} // namespace

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
  const ShapeKey key = key_of(schedule, shortest);
  if (const auto found = mappings_.find(key); found != mappings_.end()) return found->second;
  StageMapping out; // kept only if no plugin throws
  // Most of these rows are never timed, so their actions are not verified.
  const Schedule of = unverified(schedule, shortest);
  refuse(schedule, shortest, schedule::verify_stage_map(of, shortest));
  out.even = executor::split_layers(model_, shape.stages(), {});
  out.stage_rank = of.stage_rank().front();
  out.splits_backward = splits_backward(of);
  out.first_stage.assign(static_cast<std::size_t>(shape.pipeline), shape.stages());
  for (int stage = shape.stages() - 1; stage >= 0; --stage)
    out.first_stage.at(static_cast<std::size_t>(out.stage_rank.at(static_cast<std::size_t>(stage)))) = stage;
  return mappings_.emplace(key, std::move(out)).first->second;
}

Schedule ScheduleTable::unverified(int schedule, const PipelineShape& shape) const {
  const auto at = static_cast<std::size_t>(schedule);
  return plugin::guarded_call(
      request_.schedules[at].name, "rows", [&] { return schedulers_[at]->rows(shape); }, plugin::CallKind::slow_call);
}

void ScheduleTable::refuse(int schedule, const PipelineShape& shape,
                           const std::vector<schedule::Violation>& violations) const {
  if (violations.empty()) return;
  throw Error(text("its schedule of p = {}, v = {}, m = {} is invalid: {}", shape.pipeline, shape.chunks,
                   shape.microbatches, violations.front().reason()),
              request_.schedules[static_cast<std::size_t>(schedule)].name,
              "name another scheduler with --fix schedule=NAME");
}

Schedule ScheduleTable::schedule(int schedule, const PipelineShape& shape) {
  Schedule out = unverified(schedule, shape);
  if (verified_.contains(key_of(schedule, shape))) return out;
  refuse(schedule, shape, schedule::verify(out, shape));
  verified_.insert(key_of(schedule, shape));
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
