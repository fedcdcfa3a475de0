// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_acceptance.hpp"

#include <set>
#include <utility>

#include "plugin/call_guard.hpp"
#include "schedule/lower.hpp"
#include "train/plugins.hpp"
#include "train/run_limits.hpp"

namespace triax::plan {

namespace {

/// Sizes that the engine can schedule.
bool has_valid_size(const TrainingPlan& plan, const PipelineShape& shape, std::int64_t microbatches) {
  return std::int64_t{plan.pipeline} * plan.tensor * plan.data <= train::kMaxWorld &&
         shape.pipeline <= schedule::kMaxRanks && microbatches <= schedule::kMaxActions &&
         std::int64_t{shape.stages()} * shape.microbatches <= schedule::kMaxActions;
}

} // namespace

PlanSpace layouts_of(const PlanSpace& space) {
  PlanSpace out = space;
  out.chunks.resize(1);
  out.recompute.resize(1);
  out.sequence.resize(1);
  out.schedules.resize(1);
  out.shards.resize(1);
  out.balanced.resize(1);
  return out;
}

Refusals refusals_of_all_plans(const SearchRequest& request, Log& log) {
  const Layout alone = Layout::ptd(1, 1, 1);
  const train::RankPlugins plugins(request.run, alone, 0, 1, log);
  std::set<PlanAcceptance::Axes> asked;
  std::optional<Refusals> of_first;
  bool is_any_accepted = false;
  for_each_plan(layouts_of(request.space), [&](const TrainingPlan& plan) {
    if (!asked.insert(PlanAcceptance::axes_of(plan)).second) return true;
    const config::RunConfig run = run_of(request, plan);
    Refusals refusals = plugins.axis_refusals(train::layout_of(run), train::choose_placement(run), false);
    is_any_accepted = refusals.empty();
    if (!of_first) of_first = std::move(refusals);
    return !is_any_accepted;
  });
  Refusals out = plugins.fixed_refusals();
  if (of_first && !is_any_accepted) out.add(*of_first);
  return out;
}

bool PlanAcceptance::is_run_accepted() {
  if (!is_run_accepted_) is_run_accepted_ = layers_.plugins(1).fixed_refusals().empty();
  return *is_run_accepted_;
}

const PlanAcceptance::AxesAnswers& PlanAcceptance::answers_for_axes(const TrainingPlan& plan) {
  if (const auto found = answers_by_axes_.find(axes_of(plan)); found != answers_by_axes_.end()) return found->second;
  const config::RunConfig run = run_of(request_, plan);
  AxesAnswers out{train::choose_placement(run), false};
  out.is_accepted = layers_.plugins(1).axis_refusals(train::layout_of(run), out.placement, false).empty();
  return answers_by_axes_.emplace(axes_of(plan), out).first->second;
}

train::Placement PlanAcceptance::placement(const TrainingPlan& plan) {
  train::Placement out = answers_for_axes(plan).placement;
  out.ranks = plan.pipeline * plan.tensor * plan.data;
  return out;
}

bool PlanAcceptance::accepts_layers(const TrainingPlan& plan) {
  const auto [found, is_new] = accepts_layers_.emplace(
      std::tuple(plan.pipeline, plan.tensor, plan.data, plan.micro, plan.sequence, plan.recompute), false);
  if (!is_new) return found->second;
  const config::RunConfig& run = request_.run;
  const Layout layout = Layout::ptd(plan.pipeline, plan.tensor, plan.data);
  const ModelRequest asked{.vocab = run.vocab,
                           .compute = run.train.compute,
                           .sequence_parallel = splits_positions(plan),
                           .recompute = plan.recompute == Recompute::full};
  found->second = plugin::guarded_call(run.model.name, "supports",
                                       [&] { return layers_.plugins(1).model().supports(asked, layout).empty(); }) &&
                  layers_.refusals(plan.tensor, plan.micro, splits_positions(plan)).empty() && accepts_recompute(plan);
  return found->second;
}

/// Asked after the layers are accepted: they can be costed then.
bool PlanAcceptance::accepts_recompute(const TrainingPlan& plan) {
  const Refusals refusals = layers_.recompute_refusals(plan.tensor, plan.micro, splits_positions(plan), plan.recompute);
  if (plan.recompute == Recompute::cheap) {
    accepts_cheap_ |= refusals.empty();
    if (cheap_refusals_.empty()) cheap_refusals_ = refusals;
  }
  return refusals.empty();
}

bool PlanAcceptance::accepts_layout(const TrainingPlan& plan, const PipelineShape& shape) {
  return is_run_accepted() && has_valid_size(plan, shape, plan.microbatches(request_.space.batch)) &&
         answers_for_axes(plan).is_accepted && schedules_.supports(plan.schedule, shape);
}

Refusals PlanAcceptance::refusals(const TrainingPlan& plan, const PipelineShape& shape) {
  const config::RunConfig run = run_of(request_, plan);
  Refusals out = train::check_world(run);
  if (out.empty()) out = train::check_step_size(run);
  if (!out.empty()) return out;
  const Layout layout = train::layout_of(run);
  const train::RankPlugins plugins(run, layout, 0, 1, log_);
  out = plugins.refusals(layout, placement(plan), false);
  if (out.empty()) out = executor::check_split(plugins.model(), shape.stages(), {});
  if (out.empty()) out = layers_.refusals(plan.tensor, plan.micro, splits_positions(plan));
  if (out.empty()) out = layers_.recompute_refusals(plan.tensor, plan.micro, splits_positions(plan), plan.recompute);
  return out;
}

} // namespace triax::plan
