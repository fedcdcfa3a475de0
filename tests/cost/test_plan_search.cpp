// SPDX-License-Identifier: Apache-2.0
// The search of plans: the sweep is brute force, and a faster cluster is never slower. test_plan_memory.cpp has the
// tests of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cost/cluster_file.hpp"
#include "cost/plan_search_test.hpp"
#include "plan/plan_space.hpp"
#include "support/sanitizers.hpp"
#include "train/preflight.hpp"

namespace triax::plan {
namespace {

/// What an evaluator keeps of other plans, and schedules of another evaluator, change no bit of a time.
TEST_F(PlanSearch, ATimeDoesNotDependOnThePlansBefore) {
  const SearchRequest asked = request(4, kEverything);
  PlanCosts all(asked, code_, null_log());
  const std::vector<TrainingPlan> plans = all_plans(asked.space);
  int compared = 0;
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const std::optional<PlanTime> kept = all.time(plans[at]);
    if (!kept || at % 149 != 0) continue;
    PlanCosts fresh(asked, code_, null_log()), sharing(asked, code_, null_log(), &all.schedules());
    EXPECT_EQ(kept->step(), fresh.time(plans[at]).value().step()) << keys_text(asked, plans[at]);
    EXPECT_EQ(kept->step(), sharing.time(plans[at]).value().step()) << keys_text(asked, plans[at]);
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST_F(PlanSearch, TheSweepIsBruteForce) {
  std::vector<std::uint64_t> limits = {2'500'000, kEverything};
  if (test::kSanitized) limits.pop_back();
  for (const std::uint64_t limit : limits) {
    const SearchRequest asked = request(4, limit);
    PlanCosts costs(asked, code_, null_log());
    std::vector<double> times;
    int cheap = 0;
    for (const TrainingPlan& plan : all_plans(asked.space)) {
      const std::optional<PlanEvaluation> found = costs.evaluate(plan);
      const std::optional<PlanBounds> bounds = costs.bounds(plan);
      ASSERT_EQ(found.has_value(), bounds.has_value());
      if (!found) continue;
      EXPECT_LE(bounds->bytes, found->bytes) << keys_text(asked, plan);
      if (!found->fits) continue;
      EXPECT_LE(bounds->step_s, found->time.step()) << keys_text(asked, plan);
      times.push_back(found->time.step());
      cheap += plan.recompute == Recompute::cheap;
    }
    EXPECT_GT(cheap, 0);
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
  SearchRequest asked = request(8, kEverything);
  asked.space.balanced = {false}; // another cluster has other balanced stages
  const auto times = [&](const cost::Cluster& cluster) {
    const SearchRequest changed{asked.run, cluster, asked.space, asked.schedules, kEverything, 512};
    PlanCosts costs(changed, code_, null_log());
    std::vector<double> out;
    const std::vector<TrainingPlan> plans = all_plans(changed.space);
    for (std::size_t at = 0; at < plans.size(); at += 31)
      if (costs.bounds(plans[at])) out.push_back(costs.time(plans[at])->step());
    return out;
  };
  const std::vector<double> before = times(cluster_);
  ASSERT_GT(before.size(), 30U);
  for (cost::Constant* const constant : {&cluster_.device.peak_16bit, &cluster_.device.memory_bandwidth,
                                         &cluster_.node.bandwidth, &cluster_.node.nic_bandwidth}) {
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
  costs.set_is_interrupted([&] { return costs.timed() >= 3; });
  const SearchResult result = search_plans(costs, LoadedPlanner("sweep", plugin::search_folders({}), null_log()), 10);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.plans.size(), 3U);
}

TEST_F(PlanSearch, APlannerThatBreaksItsContractIsNamed) {
  const SearchRequest all = request(4, kEverything);
  PlanCosts of_all(all, code_, null_log());
  std::uint64_t least = kEverything;
  for (const TrainingPlan& plan : all_plans(all.space))
    if (const auto found = of_all.bounds(plan)) least = std::min(least, found->bytes);
  const SearchRequest asked = request(4, 3 * least); // some plans fit
  const std::pair<const char*, const char*> kFaults[] = {
      {"throws", "plan-wrong, search(): an exception: no idea"},
      {"many", "plan-wrong: search() returned 3 plans; at most 2 were requested"},
      {"twice", "plan-wrong: search() returned a plan twice: p = 1, t = "},
      {"unfit", "plan-wrong: search() returned a plan that does not fit: p = "},
      {"outside", "plan-wrong: search() returned a plan outside the space: p = "},
      {"schedule", "plan-wrong: search() returned a plan outside the space: p = "},
      {"bounds", "plan-wrong, search(): a plan outside the space is asked for: p = "},
      {"time", "plan-wrong, search(): a plan outside the space is asked for: p = "},
      {"evaluate", "plan-wrong, search(): a plan outside the space is asked for: p = "}};
  for (const auto& [fault, message] : kFaults) {
    ::setenv("TRIAX_TEST_PLAN_WRONG", fault, 1);
    PlanCosts costs(asked, code_, null_log());
    const LoadedPlanner planner(TEST_PLUGINS "/plan-wrong.so", {}, null_log());
    try {
      search_plans(costs, planner, 2);
      ADD_FAILURE() << fault;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::StartsWith(message)) << fault;
    }
  }
}

TEST_F(PlanSearch, AnAlternativeWhoseSearchIsStoppedIsLeftOut) {
  const SearchRequest asked = request(4, kEverything);
  PlanCosts costs(asked, code_, null_log());
  const LoadedPlanner planner("sweep", plugin::search_folders({}), null_log());
  const SearchResult result = search_plans(costs, planner, 1);
  ASSERT_EQ(result.plans.size(), 1U);
  EXPECT_GT(alternatives(costs, planner, result.plans.front().plan).size(), 5U);
  int asks = 0;
  costs.set_is_interrupted([&] { return ++asks > 1; }); // after the first search has begun
  EXPECT_TRUE(alternatives(costs, planner, result.plans.front().plan).empty());
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
  const auto code_of = [this](const std::vector<std::string>& settings) {
    PlanSpace fresh = request(8, 1).space;
    return fix_settings(fresh, settings, "--fix").front().code;
  };
  EXPECT_TRUE(
      fix_settings(space, {"tensor=2", "schedule.plugin=\"1f1b\"", "recompute=full", "chunks=5", "split=auto"}, "--fix")
          .empty());
  EXPECT_EQ(space.balanced, std::vector{true});
  EXPECT_EQ(space.chunks, std::vector{5});
  EXPECT_EQ(space.tensor, std::vector{2});
  EXPECT_EQ(space.schedules, std::vector<std::string>{"sched-1f1b"});
  EXPECT_EQ(space.recompute, std::vector{Recompute::full});
  // Too large, not a divisor, more than the blocks, across nodes of 8 GPUs, not a value.
  for (const char* const setting : {"micro=4611686018427387904", "micro=3", "data=16", "chunks=2147483647", "chunks=7",
                                    "tensor=two", "shard=all", "pipeline=0", "recompute=some"})
    EXPECT_EQ(code_of({setting}), ErrorCode::kInvalidValue) << setting;
  PlanSpace wide = request(24, 1).space;
  EXPECT_EQ(fix_settings(wide, {"tensor=3"}, "--fix").front().code, ErrorCode::kInvalidValue);
  EXPECT_EQ(code_of({"colour=red"}), ErrorCode::kUnknownKey);
  EXPECT_EQ(code_of({"tensor=2", "parallel.tensor=2"}), ErrorCode::kInvalidValue);
}

/// Two pipeline ranks of three data ranks on nodes of four: the first has no rank on another node, and the second has.
TEST_F(PlanSearch, GroupsAndTransfersThatLeaveANodeTakeTheNetwork) {
  const auto slow_time = [this](const TrainingPlan& plan) {
    cluster_.node.devices = 4;
    cluster_.node.nics = 1;
    cluster_.node.nic_bandwidth.value = 1e3;
    const SearchRequest asked = request(plan.pipeline * plan.tensor * plan.data, kEverything);
    return PlanCosts(asked, code_, null_log()).time(plan).value();
  };
  loaded_.run->batch.global = 12;
  const PlanTime crossing = slow_time({.pipeline = 2, .data = 3});
  const double block_bytes = 4.0 * 12 * 64 * 64, boundary_bytes = 2.0 * 32 * 64, tied_bytes = 4.0 * 250 * 64;
  EXPECT_GT(crossing.data, 3 * block_bytes * 4 / 3 / 1e3);
  EXPECT_GT(crossing.pipeline, boundary_bytes / 1e3);
  // The first and the last pipeline rank are on two nodes, and the ranks beside them are not.
  EXPECT_GT(slow_time({.pipeline = 6}).data, tied_bytes / 1e3);
  EXPECT_LT(slow_time({.pipeline = 3}).data, 1e-2);
}

TEST_F(PlanSearch, TiedParametersOfARankAreUpdatedOnce) {
  cluster_.device.memory_bandwidth.value = cluster_.device.bandwidth_efficiency.value = 1;
  loaded_.run->vocab = 256; // rows that need no padding
  const SearchRequest asked = request(1, kEverything);
  const config::RunConfig run = run_of(asked, {});
  const train::Preflight checked = train::preflight(run, train::choose_placement(run), null_log());
  ASSERT_GT(checked.parameters, 0);
  EXPECT_NEAR(PlanCosts(asked, code_, null_log()).time({})->optimizer, 38 * static_cast<double>(checked.parameters),
              1); // bytes of AdamW with 16-bit weights
}

/// Of each block and microbatch; positions that are divided already, and one tensor rank, gather nothing.
TEST_F(PlanSearch, TensorTimeHasTheAllGatherOfPartitionedInputs) {
  config::RunConfig divided = *loaded_.run;
  divided.memory.partition_activations = true;
  const SearchRequest whole_inputs = request(4, kEverything), parts = request(divided, 4, kEverything);
  const auto more_s = [&](const TrainingPlan& plan) {
    return PlanCosts(parts, code_, null_log()).time(plan).value().tensor -
           PlanCosts(whole_inputs, code_, null_log()).time(plan).value().tensor;
  };
  constexpr double kInputBytes = 32 * 64 * 2, kBlocks = 6, kMicrobatches = 16;
  const double gather_s = cost::CollectiveCost(cluster_).seconds(Collective::Kind::all_gather, kInputBytes / 4,
                                                                 cost::placed(4, 1, cluster_.node.devices));
  EXPECT_NEAR(more_s({.tensor = 4, .recompute = Recompute::full}), kBlocks * kMicrobatches * gather_s, 1e-9);
  EXPECT_EQ(more_s({.tensor = 4}), 0);
  EXPECT_EQ(more_s({.tensor = 4, .recompute = Recompute::full, .sequence = true}), 0);
  EXPECT_EQ(more_s({.data = 4, .recompute = Recompute::full}), 0);
}

TEST(CodeTraits, TheEnginesUpdateIsThatOfTheOptimizer) {
  const cost::CodeTraits engine = *cost::code_named("triax");
  EXPECT_EQ(cost::update_bytes(engine, 2, DType::f32, DType::bf16), 4 + 16 + 12 + 2 + 4);
  EXPECT_EQ(cost::reduction_bytes(engine, DType::f32), 4);
  EXPECT_EQ(cost::reduction_bytes(engine, DType::f64), 8);
  EXPECT_EQ(cost::reduction_bytes(*cost::code_named("megatron-2021"), DType::f32), 2);
  EXPECT_EQ(cost::update_bytes(engine, 0, DType::f32, DType::f32), 4 + 8 + 4 + 4);
  EXPECT_EQ(cost::update_bytes(*cost::code_named("megatron-2021"), 0, DType::f32, DType::f32), 60);
}

/// A program without R recomputes as long, but on the path of the gradients from stage to stage.
TEST_F(PlanSearch, OnlyTheEngineRecomputesBeforeItsGradientsArrive) {
  for (const char* other : {"megatron-2021", "megatron-2022"}) EXPECT_FALSE(cost::code_named(other)->recomputes_early);
  ASSERT_TRUE(code_.recomputes_early);
  cost::CodeTraits late = code_;
  late.recomputes_early = false;
  const SearchRequest asked = request(3, kEverything);
  for (const Recompute how : {Recompute::none, Recompute::full}) {
    const TrainingPlan plan{.pipeline = 3, .recompute = how};
    PlanCosts early(asked, code_, null_log()), within(asked, late, null_log());
    const PlanTime shorter = early.time(plan).value(), longer = within.time(plan).value();
    EXPECT_NEAR(shorter.compute, longer.compute, 1e-9 * longer.compute);
    if (how == Recompute::none) {
      EXPECT_EQ(shorter.bubble, longer.bubble);
    } else {
      EXPECT_LT(shorter.bubble, longer.bubble);
    }
    EXPECT_LE(early.bounds(plan)->step_s, early.time(plan)->step());
  }
}

TEST_F(PlanSearch, WidthsOfConstantsGiveAnError) {
  const SearchRequest asked = request(2, kEverything);
  const double error = relative_error(asked, code_, {TrainingPlan{.data = 2}, {}, {}}, null_log());
  EXPECT_GT(error, 0.01);
  EXPECT_LT(error, 1);
}

} // namespace
} // namespace triax::plan
