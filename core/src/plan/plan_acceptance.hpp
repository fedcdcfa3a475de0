// SPDX-License-Identifier: Apache-2.0
// Whether the plugins of a run accept a plan. Caches the answers of plugins, because a search asks about many plans.
// The key of each cache is what the answer can depend on.
//
// Threads: the main thread. Ownership: borrows request, tables and log. Errors: Error of the plugins.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "plan/layer_table.hpp"
#include "plan/search_request.hpp"
#include "plan/shape_schedules.hpp"
#include "train/rank_placement.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::plan {

class PlanAcceptance {
 public:
  PlanAcceptance(const SearchRequest& request, LayerTable& layers, ScheduleTable& schedules, Log& log)
      : request_(request), layers_(layers), schedules_(schedules), log_(log) {}

  bool accepts(const TrainingPlan& plan, const PipelineShape& shape) {
    return accepts_layout(plan, shape) && accepts_layers(plan);
  }
  /// The part of accepts() that depends on the layout, the microbatches and the schedule. Also false if the schedule is
  /// too large.
  bool accepts_layout(const TrainingPlan& plan, const PipelineShape& shape);
  /// The other part: whether the model supports the plan, and the kernel set the calls of its layers.
  bool accepts_layers(const TrainingPlan& plan);
  /// Why plugins refuse memory.recompute = "cheap" in the first of the plans that were asked about, if they refuse it
  /// in all of them. Else empty.
  Refusals cheap_refusals() const { return accepts_cheap_ ? Refusals() : cheap_refusals_; }
  /// Why accepts() is false.
  Refusals refusals(const TrainingPlan& plan, const PipelineShape& shape);
  /// Placement of the plan's ranks, as triax check chooses it.
  train::Placement placement(const TrainingPlan& plan);

  /// Which of pipeline, tensor and data have several ranks. Communicators are asked for these.
  using Axes = std::tuple<bool, bool, bool>;
  static Axes axes_of(const TrainingPlan& plan) { return {plan.pipeline > 1, plan.tensor > 1, plan.data > 1}; }

 private:
  /// The answers that are the same for all plans with these axes.
  struct AxesAnswers {
    train::Placement placement;
    bool is_accepted = false;
  };
  const AxesAnswers& answers_for_axes(const TrainingPlan& plan);
  bool is_run_accepted();
  bool accepts_recompute(const TrainingPlan& plan);

  const SearchRequest& request_;
  LayerTable& layers_;
  ScheduleTable& schedules_;
  Log& log_;
  std::optional<bool> is_run_accepted_; // the answers that are the same for all plans
  std::map<Axes, AxesAnswers> answers_by_axes_;
  std::map<std::tuple<int, int, int, std::int64_t, bool, Recompute>, bool> accepts_layers_;
  bool accepts_cheap_ = false; // in a plan
  Refusals cheap_refusals_{};  // of the first refused plan
};

/// The first plan of each combination of layout and microbatch size.
PlanSpace layouts_of(const PlanSpace& space);
/// The refusals of plugins in every plan of the space, with the text for the first plan. Asks each plugin a few
/// times only.
Refusals refusals_of_all_plans(const SearchRequest& request, Log& log);

} // namespace triax::plan
