// SPDX-License-Identifier: Apache-2.0
// The search of plans: memory is that of triax check, bounds are bounds, the sweep is brute force, and a faster cluster
// is never slower.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/cluster_file.hpp"
#include "plan/plan_search.hpp"
#include "plan/plan_space.hpp"
#include "train/preflight.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plan {
namespace {

constexpr const char* kRun = R"(
[model]
plugin = "model-gpt"
layers = 6
hidden = 64
heads = 4
sequence = 32
vocab = 250
[batch]
global = 16
[schedule]
plugin = "sched-1f1b"
[comm]
plugin = "comm-local"
[kernels]
plugin = "kernels-sim"
[optimizer]
plugin = "optim-adamw"
lr = 1e-3
[train]
steps = 1
precision = "bf16"
)";

class PlanSearch : public testing::Test {
 protected:
  PlanSearch() : bound_(activity_) {
    loaded_ = config::load(config::TomlText{kRun, "run.toml", "."}, {}, {}, config::Purpose::plan);
    cluster_ = cost::read_cluster(std::filesystem::path(TRIAX_SOURCE_DIR) / "clusters/a100-dgx.toml").cluster.value();
  }

  SearchRequest request(int ranks, std::uint64_t limit) {
    const config::RunConfig& run = loaded_.run.value();
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

constexpr std::uint64_t kEverything = std::uint64_t{1} << 60;

TEST_F(PlanSearch, MemoryIsThatOfTriaxCheckToTheByte) {
  const SearchRequest asked = request(4, kEverything);
  PlanCosts costs(asked, code_, null_log());
  int compared = 0;
  const std::vector<TrainingPlan> plans = all_plans(asked.space);
  for (std::size_t at = 0; at < plans.size(); at += 23) { // of all kinds, in a short time
    const std::optional<PlanEvaluation> found = costs.evaluate(plans[at]);
    const config::RunConfig run = run_of(asked, plans[at]);
    const train::Preflight checked = train::preflight(run, train::choose_placement(run), null_log());
    if (!found) {
      EXPECT_FALSE(checked.refusals.empty()) << keys_text(asked, plans[at]);
      continue;
    }
    ASSERT_TRUE(checked.refusals.empty()) << checked.refusals.front().message;
    std::uint64_t most = 0;
    for (const train::RankPlan& rank : checked.plans) most = std::max(most, rank.bytes());
    EXPECT_EQ(found->bytes, most) << keys_text(asked, plans[at]);
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

TEST_F(PlanSearch, TheSweepIsBruteForce) {
  for (const std::uint64_t limit : {kEverything, std::uint64_t{2'500'000}}) {
    const SearchRequest asked = request(4, limit);
    PlanCosts costs(asked, code_, null_log());
    std::vector<double> times;
    for (const TrainingPlan& plan : all_plans(asked.space)) {
      const std::optional<PlanEvaluation> found = costs.evaluate(plan);
      const std::optional<PlanBounds> bounds = costs.bounds(plan);
      ASSERT_EQ(found.has_value(), bounds.has_value());
      if (!found) continue;
      EXPECT_LE(bounds->bytes, found->bytes) << keys_text(asked, plan);
      if (!found->fits) continue;
      EXPECT_LE(bounds->step_s, found->time.step()) << keys_text(asked, plan);
      times.push_back(found->time.step());
    }
    std::ranges::sort(times);
    ASSERT_GT(times.size(), 10U);
    PlanCosts fresh(asked, code_, null_log());
    const LoadedPlanner planner("sweep", plugin::search_folders({}), null_log());
    const SearchResult result = search_plans(fresh, planner, 10);
    ASSERT_EQ(result.plans.size(), 10U);
    for (std::size_t at = 0; at < 10; ++at) EXPECT_DOUBLE_EQ(result.plans[at].evaluation.time.step(), times[at]);
  }
}

TEST_F(PlanSearch, AFasterClusterIsNeverSlower) {
  const SearchRequest asked = request(8, kEverything);
  const auto times = [&](const cost::Cluster& cluster) {
    const SearchRequest changed{asked.run, cluster, asked.space, asked.schedules, kEverything, 512};
    PlanCosts costs(changed, code_, null_log());
    std::vector<double> out;
    const std::vector<TrainingPlan> plans = all_plans(changed.space);
    for (std::size_t at = 0; at < plans.size(); at += 31)
      if (costs.bounds(plans[at])) out.push_back(costs.time_of(plans[at]).step());
    return out;
  };
  const std::vector<double> before = times(cluster_);
  ASSERT_GT(before.size(), 30U);
  for (cost::Constant* const constant : {&cluster_.device.peak_16bit, &cluster_.device.memory_bandwidth,
                                         &cluster_.node.bandwidth, &cluster_.node.card_bandwidth}) {
    constant->value *= 1.5;
    const std::vector<double> after = times(cluster_);
    constant->value /= 1.5;
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t at = 0; at < after.size(); ++at) EXPECT_LE(after[at], before[at] * (1 + 1e-12)) << at;
  }
}

TEST_F(PlanSearch, TheHeuristicsAreNoBetterThanTheSweep) {
  const SearchRequest asked = request(8, kEverything);
  PlanCosts costs(asked, code_, null_log());
  const SearchResult sweep =
                         search_plans(costs, LoadedPlanner("plan-sweep", plugin::search_folders({}), null_log()), 1),
                     sc21 = search_plans(costs, LoadedPlanner("plan-sc21", plugin::search_folders({}), null_log()), 3);
  ASSERT_EQ(sweep.plans.size(), 1U);
  ASSERT_FALSE(sc21.plans.empty());
  EXPECT_GE(sc21.plans.front().evaluation.time.step(), sweep.plans.front().evaluation.time.step());
  EXPECT_EQ(sc21.plans.front().plan.data, 8); // everything fits, so all ranks are data ranks
}

TEST_F(PlanSearch, APlanThatIsStoppedIsTheBestSoFar) {
  const SearchRequest asked = request(4, kEverything);
  PlanCosts costs(asked, code_, null_log());
  costs.set_stops([&] { return costs.evaluations() >= 3; });
  const SearchResult result = search_plans(costs, LoadedPlanner("sweep", plugin::search_folders({}), null_log()), 10);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.plans.size(), 3U);
}

TEST_F(PlanSearch, TheLeastMemoryIsThatOfBruteForce) {
  const SearchRequest all = request(2, kEverything), none = request(2, 1);
  PlanCosts costs(all, code_, null_log()), too_small(none, code_, null_log());
  std::uint64_t least = kEverything;
  for (const TrainingPlan& plan : all_plans(all.space))
    if (const std::optional<PlanEvaluation> found = costs.evaluate(plan)) least = std::min(least, found->bytes);
  EXPECT_TRUE(search_plans(too_small, LoadedPlanner("sweep", plugin::search_folders({}), null_log()), 1).plans.empty());
  const std::optional<RankedPlan> found = least_memory(too_small);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evaluation.bytes, least);
}

TEST_F(PlanSearch, SettingsThatAreFixedRestrictTheSpace) {
  PlanSpace space = request(8, 1).space;
  EXPECT_TRUE(fix_setting(space, "tensor=2", "--fix").empty());
  EXPECT_TRUE(fix_setting(space, "schedule.plugin=\"1f1b\"", "--fix").empty());
  EXPECT_TRUE(fix_setting(space, "recompute=full", "--fix").empty());
  EXPECT_EQ(space.tensor, std::vector{2});
  EXPECT_EQ(space.schedules, std::vector<std::string>{"sched-1f1b"});
  EXPECT_EQ(space.recompute, std::vector{true});
  EXPECT_EQ(fix_setting(space, "tensor=two", "--fix").front().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(fix_setting(space, "shard=all", "--fix").front().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(fix_setting(space, "colour=red", "--fix").front().code, ErrorCode::kUnknownKey);
}

TEST_F(PlanSearch, WidthsOfConstantsGiveAnError) {
  const SearchRequest asked = request(2, kEverything);
  const double error = relative_error(asked, code_, TrainingPlan{.data = 2}, null_log());
  EXPECT_GT(error, 0.01);
  EXPECT_LT(error, 1);
}

} // namespace
} // namespace triax::plan
