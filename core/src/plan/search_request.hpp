// SPDX-License-Identifier: Apache-2.0
// The input of a search of plans, and the run of a plan.
//
// Threads: read-only after construction. Ownership: borrows run and cluster; they must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.hpp"
#include "cost/cluster.hpp"
#include "triax/planner.hpp"

namespace triax::plan {

struct SearchRequest {
  const config::RunConfig& run; // as the user wrote it
  const cost::Cluster& cluster;
  PlanSpace space;
  std::vector<config::PluginChoice> schedules; // of PlanSpace::schedules
  std::uint64_t memory_limit = 0;              // bytes of a device that a plan may need
  double tokens_per_step = 0;
};

/// Blocks of each stage; empty: even.
using Split = std::vector<std::int64_t>;

/// The run with the settings of a plan. `split`: that of the plan (PlanCosts::split()).
config::RunConfig run_of(const SearchRequest& request, const TrainingPlan& plan, const Split& split = {});

/// A setting of a plan as a key of a TOML file, with its value as TOML.
struct PlanKey {
  std::string table, key, value;
};
/// All settings of a plan, by table. A split and scatter/gather that the run has are listed where the plan ends them.
std::vector<PlanKey> keys_of(const SearchRequest& request, const TrainingPlan& plan, const Split& split = {});

/// Whether tensor ranks of the plan divide positions: sequence parallelism.
bool splits_positions(const TrainingPlan& plan);
/// Whether stages of the plan exchange the parts of a boundary: as in the run, and not with sequence parallelism.
bool scatters(const config::RunConfig& run, const TrainingPlan& plan);

} // namespace triax::plan
