// SPDX-License-Identifier: Apache-2.0
// Plans are accepted exactly if preflight accepts them; refusals that hold for all plans come before the search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/cluster_file.hpp"
#include "cost/planned_run.hpp"
#include "plan/layer_table.hpp"
#include "plan/plan_search.hpp"
#include "plan/plan_space.hpp"
#include "support/error_of.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plan {
namespace {

using testing::HasSubstr;

/// Its blocks do not offer CheapRecompute.
constexpr const char* kDividedRun = R"(
[plugins]
path = [")" TEST_TRAIN_PLUGINS R"("]
[model]
plugin = "model-divided"
vocab = 16
[batch]
global = 16
[schedule]
plugin = "sched-1f1b"
[comm]
plugin = "comm-local"
[kernels]
plugin = "kernels-sim"
[optimizer]
plugin = "optim-sgd"
lr = 0.25
[train]
steps = 1
precision = "fp32"
)";

class Acceptance : public testing::Test {
 protected:
  Acceptance() : bound_(activity_) {}

  /// With a communicator for processes.
  static config::RunConfig run(std::vector<config::Override> overrides) {
    overrides.insert(overrides.end(),
                     {{"plugins.path", "[\"" TEST_TRAIN_PLUGINS "\"]"}, {"comm.plugin", "comm-processes"}});
    const config::LoadResult loaded =
        config::load(config::TomlText{kPlannedRun, "run.toml", "."}, overrides, {}, config::Purpose::plan);
    if (!loaded.run) throw Error(loaded.refusals.front().text);
    return *loaded.run;
  }
  /// The run must outlive the request.
  SearchRequest request(const config::RunConfig& run, int ranks) const {
    return {
        run,     cluster_, make_space({run, cluster_, ranks, {6, 1, 32}, {run.schedule.name}, true}), {run.schedule},
        kMemory, 512};
  }

  static constexpr std::uint64_t kMemory = std::uint64_t{1} << 40;
  RankActivity activity_;
  RankActivity::Binding bound_;
  const cost::Cluster cluster_ =
      cost::read_cluster(std::filesystem::path(TRIAX_SOURCE_DIR) / "clusters/a100-dgx.toml").cluster.value();
  const cost::CodeTraits code_ = *cost::code_named("triax");
};

/// The test is one rank as a thread; the plans have four ranks as processes.
TEST_F(Acceptance, ACommunicatorForProcessesAcceptsPlansOfARunWithoutLayout) {
  const config::RunConfig processes = run({});
  const SearchRequest asked = request(processes, 4);
  EXPECT_TRUE(refusals_of_all_plans(asked, null_log()).empty());
  PlanCosts costs(asked, code_, null_log());
  const LoadedPlanner planner("sweep", plugin::search_folders({}), null_log());
  EXPECT_EQ(search_plans(costs, planner, 3).plans.size(), 3U);
  EXPECT_TRUE(costs.refusals({.data = 4}).empty());
}

TEST_F(Acceptance, WhatHoldsForEveryPlanIsSaidBeforeASearch) {
  const config::RunConfig timeline = run({{"kernels.plugin", "kernels-elsewhere"}, {"log.timeline", "1"}});
  const Refusals refusals = refusals_of_all_plans(request(timeline, 4), null_log());
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_THAT(refusals.front().message, HasSubstr("log.timeline = 1: kernels.plugin \"kernels-elsewhere\""));
  EXPECT_FALSE(refusals.front().hint.empty());
  const config::RunConfig captured = run({{"train.cuda_graph", "true"}});
  EXPECT_THAT(refusals_of_all_plans(request(captured, 4), null_log()).front().keys,
              testing::ElementsAre("train.cuda_graph", "kernels.plugin"));
}

/// Also if it is asked again: what it has answered before it throws is not kept.
TEST_F(Acceptance, AKernelSetThatThrowsIsNamed) {
  const config::RunConfig elsewhere = run({{"kernels.plugin", "kernels-elsewhere"}, {"kernels.throws", "true"}});
  LayerTable layers(elsewhere, cluster_, code_, null_log());
  for (int time = 0; time < 2; ++time)
    EXPECT_THAT(test::error_of([&] { layers.layers(1, 1, false); }),
                HasSubstr("kernels-elsewhere, supports(): no answer"));
}

/// Four heads on one tensor rank are too many for this kernel set, and two on each of two are not.
TEST_F(Acceptance, ACallThatTheKernelSetRefusesNeedsNoEvaluation) {
  const config::RunConfig elsewhere = run({{"kernels.plugin", "kernels-elsewhere"}});
  const SearchRequest asked = request(elsewhere, 4);
  PlanCosts costs(asked, code_, null_log());
  int refused = 0, accepted = 0;
  for_each_plan(asked.space, [&](const TrainingPlan& plan) {
    const bool has_bounds = costs.bounds(plan).has_value();
    if (plan.tensor == 1) {
      EXPECT_FALSE(has_bounds) << sizes_text(plan);
      ++refused;
    }
    accepted += has_bounds;
    return true;
  });
  EXPECT_GT(refused, 10);
  EXPECT_GT(accepted, 10);
  const Refusals why = costs.refusals({.data = 4});
  ASSERT_EQ(why.size(), 1U);
  EXPECT_THAT(why.front().message, HasSubstr("kernels.plugin \"kernels-elsewhere\": attention of more than two heads"));
  EXPECT_EQ(why.front().hint, "use fewer");
  EXPECT_FALSE(costs.evaluate({.data = 4}));
  EXPECT_EQ(costs.timed(), 0U);
}

/// Activations of this kernel set in fp32 cannot be repeated; its attention has two heads at most.
TEST_F(Acceptance, CheapRecomputationThatTheKernelSetCannotRepeatIsRefused) {
  const config::RunConfig elsewhere = run({{"kernels.plugin", "kernels-elsewhere"}, {"train.precision", "fp32"}});
  const SearchRequest asked = request(elsewhere, 4);
  PlanCosts costs(asked, code_, null_log());
  int refused = 0, accepted = 0;
  for_each_plan(asked.space, [&](const TrainingPlan& plan) {
    const bool has_bounds = costs.bounds(plan).has_value();
    if (plan.recompute == Recompute::cheap) {
      EXPECT_FALSE(has_bounds) << sizes_text(plan);
      ++refused;
    }
    accepted += has_bounds;
    return true;
  });
  EXPECT_GT(refused, 10);
  EXPECT_GT(accepted, 10);
  const TrainingPlan cheap{.tensor = 2, .data = 2, .recompute = Recompute::cheap};
  EXPECT_FALSE(costs.evaluate(cheap));
  for (const Refusals& why : {costs.refusals(cheap), costs.cheap_refusals()}) {
    ASSERT_EQ(why.size(), 1U);
    EXPECT_EQ(why.front().message, "kernels.plugin \"kernels-elsewhere\": activations in f32 cannot be repeated");
    EXPECT_EQ(why.front().hint, "use bf16");
  }
  const config::RunConfig bf16 = run({{"kernels.plugin", "kernels-elsewhere"}});
  const SearchRequest repeatable = request(bf16, 4);
  PlanCosts of_bf16(repeatable, code_, null_log());
  EXPECT_TRUE(of_bf16.bounds(cheap));
  EXPECT_TRUE(of_bf16.cheap_refusals().empty());
}

TEST_F(Acceptance, AModelWithoutCheapRecomputationHasNoSuchPlan) {
  const config::LoadResult loaded =
      config::load(config::TomlText{kDividedRun, "run.toml", "."}, {}, {}, config::Purpose::plan);
  ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
  SearchRequest asked = request(*loaded.run, 2);
  asked.space.blocks = 2;
  asked.space.pipeline = {1, 2};
  asked.space.chunks = {1};
  asked.space.balanced = {false};
  PlanCosts costs(asked, code_, null_log());
  int accepted = 0;
  for_each_plan(asked.space, [&](const TrainingPlan& plan) {
    const bool has_bounds = costs.bounds(plan).has_value();
    EXPECT_TRUE(plan.recompute == Recompute::none || !has_bounds) << sizes_text(plan);
    accepted += has_bounds;
    return true;
  });
  EXPECT_GT(accepted, 2);
  ASSERT_EQ(costs.cheap_refusals().size(), 2U); // of two blocks of different kinds
  EXPECT_THAT(costs.cheap_refusals().front().message,
              HasSubstr("memory.recompute = \"cheap\": first of model-divided cannot recompute a part"));
}

/// A bound above the exact memory would reject plans that fit. The buffers are small, so that part of
/// this model's state stays on disk.
TEST_F(Acceptance, BoundsOfMemoryLeaveOutOffloadedState) {
  const config::RunConfig offloaded =
      run({{"kernels.plugin", "kernels-cpu"}, {"memory.offload", "disk"}, {"memory.offload_buffer_bytes", "4096"}});
  const SearchRequest asked = request(offloaded, 4);
  PlanCosts costs(asked, code_, null_log());
  int compared = 0;
  for_each_plan(asked.space, [&](const TrainingPlan& plan) {
    const std::optional<PlanEvaluation> found = costs.evaluate(plan);
    if (!found) return true;
    EXPECT_LE(costs.bounds(plan)->bytes, found->bytes) << sizes_text(plan);
    ++compared;
    return true;
  });
  const Refusals why = costs.refusals({.data = 4});
  EXPECT_GT(compared, 10) << (why.empty() ? "" : why.front().message);
}

} // namespace
} // namespace triax::plan
