// SPDX-License-Identifier: Apache-2.0
// The memory of searched plans: it is that of triax check, its bound is one, and a plan fits if its exact memory does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/plan_search_test.hpp"
#include "support/sanitizers.hpp"
#include "train/preflight.hpp"

namespace triax::plan {
namespace {

TEST_F(PlanSearch, MemoryIsThatOfTriaxCheckToTheByte) {
  const SearchRequest asked = request(4, kEverything);
  EXPECT_GT(compare_memory(asked, all_plans(asked.space), 23, code_), 30); // of all kinds, in a short time
}

TEST_F(PlanSearch, MemoryIsThatOfTriaxCheckForRunsOfOtherKinds) {
  const std::vector<config::Override> kRuns[] = {{{"optimizer.plugin", "optim-sgd"}},
                                                 {{"memory.recompute_layers", "0"}, {"model.layers", "7"}},
                                                 {{"memory.recompute_layers", "[2, 1]"}, {"parallel.pipeline", "2"}},
                                                 {{"memory.partition_activations", "true"}, {"model.layers", "7"}},
                                                 {{"memory.offload_activations", "true"}, {"model.layers", "7"}},
                                                 {{"parallel.scatter_gather", "true"}, {"parallel.tensor", "2"}},
                                                 {{"train.precision", "fp32"}},
                                                 {{"model.plugin", "model-llama"},
                                                  {"model.layers", "6"},
                                                  {"model.hidden", "64"},
                                                  {"model.heads", "4"},
                                                  {"model.kv_heads", "2"},
                                                  {"model.sequence", "32"}}};
  for (const std::vector<config::Override>& overrides : kRuns) {
    const config::LoadResult loaded =
        config::load(config::TomlText{kPlannedRun, "run.toml", "."}, overrides, {}, config::Purpose::plan);
    ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
    const SearchRequest asked = request(*loaded.run, 4, kEverything);
    EXPECT_GT(compare_memory(asked, all_plans(asked.space), 97, code_), 5) << overrides.front().value;
  }
}

/// The plan may have other stages than the run.
TEST_F(PlanSearch, AListByStageIsReplaced) {
  const config::LoadResult loaded = config::load(
      config::TomlText{kPlannedRun, "run.toml", "."},
      {{"parallel.pipeline", "2"}, {"memory.recompute", R"(["full", "none"])"}, {"memory.recompute_layers", "[2, 1]"}},
      {}, config::Purpose::plan);
  ASSERT_TRUE(loaded.run) << loaded.refusals.front().text;
  const SearchRequest asked = request(*loaded.run, 4, kEverything);
  const TrainingPlan plan{.pipeline = 4, .recompute = Recompute::full};
  EXPECT_THAT(keys_text(asked, plan),
              ::testing::HasSubstr("memory.recompute = \"full\", memory.recompute_layers = 1, "));
  EXPECT_EQ(run_of(asked, plan).memory.recompute_layers, config::PerStage<std::int64_t>(1));
}

/// A period of these rows is 2p microbatches.
TEST_F(PlanSearch, SlotsAreExtrapolatedOnlyIfTheyArePeriodic) {
  const config::LoadResult grouped = config::load(config::TomlText{kPlannedRun, "run.toml", "."},
                                                  {{"schedule.plugin", "sched-interleaved"},
                                                   {"schedule.group", "6"},
                                                   {"parallel.pipeline", "3"},
                                                   {"parallel.chunks", "2"},
                                                   {"batch.global", "60"},
                                                   {"batch.micro", "1"}},
                                                  {}, config::Purpose::plan);
  ASSERT_TRUE(grouped.run) << grouped.refusals.front().text;
  const SearchRequest asked = request(*grouped.run, 3, kEverything);
  PlanCosts costs(asked, code_, null_log());
  for (const std::int64_t micro : {1, 2, 5}) {
    const TrainingPlan plan{.pipeline = 3, .micro = micro, .chunks = 2}; // the run's scheduler is the first
    const std::optional<std::uint64_t> found = costs.exact_bytes(plan);
    const config::RunConfig run = run_of(asked, plan);
    const train::Preflight checked = train::preflight(run, train::choose_placement(run), null_log());
    ASSERT_TRUE(checked.refusals.empty()) << checked.refusals.front().message;
    std::uint64_t most = 0;
    for (const train::RankPlan& rank : checked.plans) most = std::max(most, rank.bytes());
    EXPECT_EQ(found, most) << keys_text(asked, plan);
  }
}

/// Also of schedules that split backwards, with a last stage whose logits are most of what it keeps, and with inputs on
/// the host.
TEST_F(PlanSearch, TheBoundOfMemoryIsNeverAboveIt) {
  for (const std::int64_t vocab : {250, 5000}) {
    config::RunConfig run = loaded_.run.value();
    run.vocab = vocab;
    run.memory.offload_activations = vocab == 250;
    const SearchRequest whole = request(run, 4, kEverything), nothing = request(run, 4, 0);
    // Without memory, an evaluation ends at the bound.
    PlanCosts exact(whole, code_, null_log()), bounded(nothing, code_, null_log());
    int splits = 0;
    const std::vector<TrainingPlan> plans = all_plans(whole.space);
    for (std::size_t at = 0; at < plans.size(); ++at) {
      if (plans[at].pipeline < 4 && at % 7 != 0) continue; // to save time
      const std::optional<PlanEvaluation> bound = bounded.evaluate(plans[at]);
      const std::optional<std::uint64_t> bytes = bound ? exact.exact_bytes(plans[at]) : std::nullopt;
      if (!bytes) continue;
      EXPECT_LE(bound->bytes, *bytes) << keys_text(whole, plans[at]);
      const std::string& schedule = whole.space.schedules[static_cast<std::size_t>(plans[at].schedule)];
      splits += schedule.starts_with("sched-zb") && plans[at].pipeline == 4;
    }
    EXPECT_GT(splits, 10);
  }
}

/// An evaluation ends at the first rank that exceeds the limit. It refuses no plan that fits, and accepts no other.
TEST_F(PlanSearch, APlanFitsIfItsExactMemoryDoes) {
  std::mt19937 random(7); // the same plans in each run
  for (const std::int64_t vocab : {250, 5000}) {
    config::RunConfig run = loaded_.run.value();
    run.vocab = vocab;
    const SearchRequest whole = request(run, 4, kEverything);
    PlanCosts exact(whole, code_, null_log());
    std::vector<TrainingPlan> plans = all_plans(whole.space);
    std::ranges::shuffle(plans, random);
    plans.resize(std::min(plans.size(), test::kSanitized ? std::size_t{60} : std::size_t{150}));
    std::vector<std::uint64_t> sizes;
    for (const TrainingPlan& plan : plans)
      if (const std::optional<PlanEvaluation> found = exact.evaluate(plan)) sizes.push_back(found->bytes);
    ASSERT_GT(sizes.size(), 10U);
    std::ranges::sort(sizes);
    for (const std::size_t part : {1, 2, 3}) {
      const SearchRequest limited = request(run, 4, sizes[part * sizes.size() / 4]);
      PlanCosts costs(limited, code_, null_log());
      int refused = 0;
      for (const TrainingPlan& plan : plans) {
        const std::optional<PlanEvaluation> all = exact.evaluate(plan), found = costs.evaluate(plan);
        if (!all) { // a rank is refused when it is planned, which the bound may come before
          EXPECT_FALSE(found && found->fits) << keys_text(whole, plan);
          continue;
        }
        ASSERT_TRUE(found) << keys_text(whole, plan);
        EXPECT_EQ(found->fits, all->bytes <= limited.memory_limit) << keys_text(whole, plan);
        EXPECT_LE(found->bytes, all->bytes) << keys_text(whole, plan);
        if (found->fits) {
          EXPECT_EQ(found->bytes, all->bytes) << keys_text(whole, plan);
        }
        refused += !found->fits;
      }
      EXPECT_GT(refused, 0);
    }
  }
}

} // namespace
} // namespace triax::plan
