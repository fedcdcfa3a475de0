// SPDX-License-Identifier: Apache-2.0
// The space of plans of a run on a number of ranks, and what the user fixes of it.
//
// Threads: pure functions. Errors: returned.
#pragma once

#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "cost/cluster.hpp"
#include "triax/error.hpp"
#include "triax/model.hpp"
#include "triax/planner.hpp"

namespace triax::plan {

/// The input of a space of plans.
struct SpaceRequest {
  const config::RunConfig& run;
  const cost::Cluster& cluster;
  int ranks = 1;
  ModelInfo model;
  std::vector<std::string> schedules;
  bool can_shard_states = true; // the optimizer updates each element alone
};
PlanSpace make_space(const SpaceRequest& request);

/// Whether for_each_plan() visits the plan.
bool contains(const PlanSpace& space, const TrainingPlan& plan);
/// Parts of it: the layout, microbatch, chunks and schedule; and the other settings.
/// @{
bool contains_layout(const PlanSpace& space, const TrainingPlan& plan);
bool contains_settings(const PlanSpace& space, const TrainingPlan& plan);
/// @}
/// For messages: "p = 2, t = 4, d = 1, v = 1, b = 8".
std::string sizes_text(const TrainingPlan& plan);

/// Restricts a space to values of settings: "tensor=8", "parallel.tensor=8", "schedule=1f1b". `flag` names them in
/// messages. A setting can be fixed once.
Refusals fix_settings(PlanSpace& space, const std::vector<std::string>& settings, const std::string& flag);

} // namespace triax::plan
