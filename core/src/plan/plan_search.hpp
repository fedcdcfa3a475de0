// SPDX-License-Identifier: Apache-2.0
// Searches the plans of a run on a cluster with a planner plugin: the best plans, the best with another value of each
// setting, the plan that needs least memory, and the standard error of a time.
//
// Threads: the main thread. Blocking: computes for tenths of a second to minutes. Errors: Error of plugins; Error with
// the planner's name if it returns what is not a plan of the space.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan_acceptance.hpp"
#include "plan/plan_costs.hpp"
#include "plan/search_request.hpp"
#include "triax/log.hpp"

namespace triax::plan {

struct RankedPlan {
  TrainingPlan plan;
  PlanEvaluation evaluation;
  Split split{}; // set if the split is balanced
};

struct SearchResult {
  std::vector<RankedPlan> plans; // fastest first; they fit
  std::size_t timed = 0;         // plans whose schedule was simulated
  bool stopped = false;
};

/// The best plan that has another value of one setting.
struct Alternative {
  std::string setting;            // "parallel.tensor"
  std::optional<RankedPlan> best; // empty: none fits
};

/// The run's scheduler, and those beside it whose options have defaults. Plugins that cannot be loaded are left out.
std::vector<config::PluginChoice> schedulers_beside(const config::RunConfig& run);

/// A planner plugin, created with the defaults of its options. Throws Error.
class LoadedPlanner {
 public:
  /// A name, also without its prefix, or a file.
  LoadedPlanner(const std::string& name, const std::vector<plugin::SearchFolder>& folders, Log& log);
  LoadedPlanner(const LoadedPlanner&) = delete; // its object refers to its options
  LoadedPlanner& operator=(const LoadedPlanner&) = delete;
  Planner& operator*() const { return *planner_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  const plugin::Library* library_ = nullptr;
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  plugin::Instance<Planner> planner_;
};

SearchResult search_plans(PlanCosts& costs, const LoadedPlanner& planner, int count);

/// For each setting that has several values in the space.
std::vector<Alternative> alternatives(PlanCosts& costs, const LoadedPlanner& planner, const TrainingPlan& best);

/// The plan that needs least memory; empty if the plugins of the run refuse all plans.
std::optional<RankedPlan> least_memory(PlanCosts& costs);

/// Standard deviation of the step time, as a fraction: each constant of the cluster is varied by its width alone.
double relative_error(const SearchRequest& request, const cost::CodeTraits& code, const RankedPlan& plan, Log& log);

} // namespace triax::plan
