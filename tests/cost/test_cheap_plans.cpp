// SPDX-License-Identifier: Apache-2.0
// Plans with memory.recompute = "cheap": their memory, their time, and that a search finds them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost/plan_search_test.hpp"

namespace triax::plan {
namespace {

class CheapPlans : public PlanSearch {};

TEST_F(CheapPlans, NeedTheMemoryOfTriaxCheck) {
  SearchRequest asked = request(4, kEverything);
  asked.space.recompute = {Recompute::cheap};
  EXPECT_GT(compare_memory(asked, all_plans(asked.space), 19, code_), 20);
  config::RunConfig run = loaded_.run.value();
  run.parallel.scatter_gather = true;
  SearchRequest scattered = request(run, 4, kEverything);
  scattered.space.recompute = {Recompute::cheap};
  EXPECT_GT(compare_memory(scattered, all_plans(scattered.space), 41, code_), 5);
}

/// A part of the forward is repeated, and a part of the stash is kept.
TEST_F(CheapPlans, AreBetweenNoneAndFull) {
  SearchRequest asked = request(4, kEverything);
  asked.space.balanced = {false}; // stages have the same blocks with each value
  asked.space.recompute = {Recompute::none};
  const std::vector<TrainingPlan> plans = all_plans(asked.space);
  asked.space.recompute = {Recompute::none, Recompute::cheap, Recompute::full};
  PlanCosts costs(asked, code_, null_log());
  int compared = 0;
  for (std::size_t at = 0; at < plans.size(); at += 5) {
    TrainingPlan plan = plans[at];
    if (!costs.bounds(plan)) continue;
    std::vector<PlanEvaluation> found;
    for (const Recompute recompute : asked.space.recompute) {
      plan.recompute = recompute;
      found.push_back(costs.evaluate(plan).value());
    }
    for (std::size_t more = 1; more < found.size(); ++more) {
      const PlanTime &before = found[more - 1].time, &after = found[more].time;
      EXPECT_LT(before.compute, after.compute) << keys_text(asked, plan);
      EXPECT_LE(before.tensor, after.tensor) << keys_text(asked, plan);
      // Of several blocks in flight on a rank, the recomputed tensors of one exist.
      const bool keeps_blocks = plan.pipeline == 1 && plan.chunks == 1 && plan.schedule == 0;
      if (!keeps_blocks) continue;
      EXPECT_GT(found[more - 1].bytes, found[more].bytes) << keys_text(asked, plan);
      ++compared;
    }
    EXPECT_EQ(found[0].time.tensor, found[1].time.tensor) << keys_text(asked, plan); // no collective is repeated
  }
  EXPECT_GT(compared, 5);
}

/// Of the plans that fit then, those with full recomputation are slower.
TEST_F(CheapPlans, AreFoundWhereNothingFitsWithoutRecomputation) {
  SearchRequest asked = request(1, kEverything);
  asked.space.chunks = {1};
  asked.space.micro = {1}; // larger ones could be faster with full recomputation
  std::uint64_t least = kEverything;
  PlanCosts all(asked, code_, null_log());
  for (const TrainingPlan& plan : all_plans(asked.space))
    if (plan.recompute == Recompute::none)
      if (const std::optional<PlanEvaluation> found = all.evaluate(plan)) least = std::min(least, found->bytes);
  asked.memory_limit = least - 1;
  PlanCosts costs(asked, code_, null_log());
  const SearchResult result = search_plans(costs, LoadedPlanner("sweep", plugin::search_folders({}), null_log()), 1);
  ASSERT_EQ(result.plans.size(), 1U);
  const TrainingPlan& best = result.plans.front().plan;
  EXPECT_EQ(best.recompute, Recompute::cheap);
  EXPECT_THAT(keys_text(asked, best), ::testing::HasSubstr("memory.recompute = \"cheap\", "));
  EXPECT_EQ(run_of(asked, best).memory.recompute, config::PerStage<std::string>("cheap"));
}

} // namespace
} // namespace triax::plan
