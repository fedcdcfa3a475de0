// SPDX-License-Identifier: Apache-2.0
// The base of tests that search plans of a small GPT on a cluster of A100.
//
// Threads: one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/cluster_file.hpp"
#include "cost/planned_run.hpp"
#include "plan/plan_search.hpp"
#include "plan/plan_space.hpp"
#include "train/preflight.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plan {

/// Searches the plans of kPlannedRun.
class PlanSearch : public testing::Test {
 protected:
  PlanSearch() : bound_(activity_) {
    loaded_ = config::load(config::TomlText{kPlannedRun, "run.toml", "."}, {}, {}, config::Purpose::plan);
    cluster_ = cost::read_cluster(std::filesystem::path(TRIAX_SOURCE_DIR) / "clusters/a100-dgx.toml").cluster.value();
  }

  SearchRequest request(int ranks, std::uint64_t limit) { return request(loaded_.run.value(), ranks, limit); }
  /// The run must outlive the request.
  SearchRequest request(const config::RunConfig& run, int ranks, std::uint64_t limit) const {
    const std::vector<config::PluginChoice> schedules = schedulers_beside(run);
    std::vector<std::string> names;
    for (const config::PluginChoice& choice : schedules) names.push_back(choice.name);
    return {run, cluster_, make_space({run, cluster_, ranks, {6, 1, 32}, names, true}), schedules, limit, 512};
  }
  static std::vector<TrainingPlan> all_plans(const PlanSpace& space) {
    std::vector<TrainingPlan> out;
    for_each_plan(space, [&](const TrainingPlan& plan) {
      out.push_back(plan);
      return true;
    });
    return out;
  }

  static std::string keys_text(const SearchRequest& request, const TrainingPlan& plan) {
    std::string out;
    for (const PlanKey& of : keys_of(request, plan)) out += of.table + "." + of.key + " = " + of.value + ", ";
    return out;
  }

  RankActivity activity_;
  RankActivity::Binding bound_;
  config::LoadResult loaded_;
  cost::Cluster cluster_;
  const cost::CodeTraits code_ = *cost::code_named("triax");
};

inline constexpr std::uint64_t kEverything = std::uint64_t{1} << 60; // bytes: all plans fit

/// Compares every `stride`-th plan with triax check; returns the number of those that are accepted.
inline int compare_memory(const SearchRequest& asked, const std::vector<TrainingPlan>& plans, std::size_t stride,
                          const cost::CodeTraits& code) {
  PlanCosts costs(asked, code, null_log());
  int compared = 0;
  for (std::size_t at = 0; at < plans.size(); at += stride) {
    const std::optional<PlanEvaluation> found = costs.evaluate(plans[at]);
    if (plans[at].balanced && !costs.bounds(plans[at])) continue; // its stages are even
    const config::RunConfig run = run_of(asked, plans[at], costs.split(plans[at]));
    const std::string text = sizes_text(plans[at]);
    const train::Preflight checked = train::preflight(run, train::choose_placement(run), null_log());
    EXPECT_EQ(found.has_value(), checked.refusals.empty()) << text;
    if (!found || !checked.refusals.empty()) continue;
    std::uint64_t most = 0;
    for (const train::RankPlan& rank : checked.plans) most = std::max(most, rank.bytes());
    EXPECT_EQ(found->bytes, most) << text;
    ++compared;
  }
  return compared;
}

} // namespace triax::plan
