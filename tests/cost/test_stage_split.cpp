// SPDX-License-Identifier: Apache-2.0
// parallel.split = "auto": the numbers that it stands for, and the balanced plans of a search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "cost/cluster_file.hpp"
#include "cost/cluster_text.hpp"
#include "cost/planned_run.hpp"
#include "plan/plan_search.hpp"
#include "plan/plan_space.hpp"
#include "plan/stage_split.hpp"
#include "support/temp_folder.hpp"
#include "train/plugins.hpp"
#include "triax/rank_activity.hpp"
#include "triax/text.hpp"

namespace triax::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Overrides = std::vector<config::Override>;

const std::string kCluster = TRIAX_SOURCE_DIR "/clusters/a100-dgx.toml";

/// Logits that take as long as several blocks.
const Overrides kLargeHead = {{"model.vocab", "3000000"}, {"model.layers", "12"},     {"model.hidden", "256"},
                              {"parallel.pipeline", "4"}, {"parallel.split", "auto"}, {"batch.global", "16"}};

/// `more` replaces keys of `overrides`.
Overrides with(const Overrides& overrides, const Overrides& more) {
  Overrides out = more;
  for (const config::Override& of : overrides)
    if (std::ranges::find(more, of.key, &config::Override::key) == more.end()) out.push_back(of);
  return out;
}

config::LoadResult resolved(const Overrides& overrides) {
  config::LoadResult out =
      config::load(config::TomlText{kPlannedRun, "run.toml", "."}, overrides, {}, config::Purpose::plan);
  resolve_split(out, null_log());
  return out;
}

Split split_of(const config::LoadResult& loaded) {
  EXPECT_TRUE(loaded.run) << (loaded.refusals.empty() ? "" : loaded.refusals.front().text);
  return loaded.run ? loaded.run->parallel.split : Split();
}

std::string value_of(const config::LoadResult& loaded, const std::string& key) {
  for (const config::ResolvedValue& value : loaded.values)
    if (value.key == key) return value.value + " # " + value.origin;
  return {};
}

TEST(AutomaticSplit, GivesTheLastStageFewerBlocks) {
  const config::LoadResult loaded = resolved(kLargeHead);
  const Split split = split_of(loaded);
  ASSERT_EQ(split.size(), 4U);
  EXPECT_EQ(std::accumulate(split.begin(), split.end(), std::int64_t{0}), 12);
  EXPECT_LT(split.back(), 3);
  EXPECT_GT(split.front(), split.back());
  EXPECT_LT(loaded.run->parallel.excess->automatic, loaded.run->parallel.excess->even);
  EXPECT_GE(loaded.run->parallel.excess->automatic, 0);
}

/// Every rank computes the same split. resolved.toml has its numbers, so a resumed run uses it too.
TEST(AutomaticSplit, IsRecordedAsNumbers) {
  const config::LoadResult loaded = resolved(kLargeHead), again = resolved(kLargeHead);
  EXPECT_EQ(split_of(loaded), split_of(again));
  const std::string value = value_of(loaded, "parallel.split");
  EXPECT_THAT(value, testing::StartsWith("["));
  EXPECT_THAT(value, testing::EndsWith("] # auto, --set"));
  const std::string numbers = value.substr(0, value.find(" #"));
  EXPECT_EQ(loaded.run->values.at("parallel.split"), numbers);
  EXPECT_THAT(config::to_toml(loaded), HasSubstr("split = " + numbers));
  const config::LoadResult of_numbers = resolved(with(kLargeHead, {{"parallel.split", numbers}}));
  EXPECT_EQ(split_of(of_numbers), split_of(loaded));
  EXPECT_FALSE(of_numbers.run->parallel.excess);
}

TEST(AutomaticSplit, FollowsTheClusterFile) {
  const test::TempFolder folder;
  cost::Cluster cluster = *cost::read_cluster(kCluster).cluster;
  cluster.device.peak_16bit.value = 1e9; // matrix products take all the time, and those of the logits most of it
  cluster.device.launch_s.value = cluster.device.host_launch_s.value = 0;
  test::write_file(folder / "slow.toml", cost::to_toml(cluster));
  const Overrides run = with(kLargeHead, {{"model.vocab", "60000"}});
  const Split slow = split_of(resolved(with(run, {{"parallel.split_cluster", (folder / "slow.toml").string()}})));
  const Split fast = split_of(resolved(with(run, {{"parallel.split_cluster", kCluster}})));
  EXPECT_LT(slow.back(), fast.back());
  const config::LoadResult absent =
      resolved(with(kLargeHead, {{"parallel.split_cluster", (folder / "no.toml").string()}}));
  EXPECT_FALSE(absent.run);
  ASSERT_FALSE(absent.refusals.empty());
  EXPECT_THAT(absent.refusals.front().text, HasSubstr("no.toml"));
  EXPECT_THAT(absent.refusals.front().refusal.keys, ElementsAre("parallel.split_cluster"));
}

/// The error names the key and its line in run.toml, and the line in the cluster file.
TEST(AutomaticSplit, NamesTheKeyOfAWrongClusterFile) {
  const test::TempFolder folder;
  test::write_file(folder / "wrong.toml", "[cluster]\nname = 3\n");
  test::write_file(folder / "run.toml",
                   text("{}[parallel]\nsplit = \"auto\"\nsplit_cluster = \"wrong.toml\"\n", kPlannedRun));
  config::LoadResult loaded = config::load(folder / "run.toml", {}, {}, config::Purpose::plan);
  resolve_split(loaded, null_log());
  EXPECT_FALSE(loaded.run);
  ASSERT_FALSE(loaded.refusals.empty());
  EXPECT_THAT(loaded.refusals.front().text, HasSubstr("run.toml:25:"));
  EXPECT_THAT(loaded.refusals.front().text, HasSubstr("parallel.split_cluster: "));
  EXPECT_THAT(loaded.refusals.front().text, HasSubstr("wrong.toml:2:"));
}

TEST(AutomaticSplit, IsEvenIfThatIsNoSlower) {
  const Split small =
      split_of(resolved({{"parallel.split", "auto"}, {"parallel.pipeline", "3"}, {"model.vocab", "16"}}));
  EXPECT_THAT(small, ElementsAre(2, 2, 2));
  EXPECT_THAT(split_of(resolved({{"parallel.split", "auto"}})), ElementsAre(6));
}

/// With chunks, the slowest stage takes no longer than with an even split.
TEST(AutomaticSplit, WithChunksIsNoSlowerThanEven) {
  for (const char* const vocab : {"250", "20000", "200000"}) {
    const config::LoadResult loaded = resolved(with(kLargeHead, {{"model.vocab", vocab},
                                                                 {"parallel.chunks", "2"},
                                                                 {"model.layers", "16"},
                                                                 {"schedule.plugin", "sched-interleaved"}}));
    const Split split = split_of(loaded);
    ASSERT_EQ(split.size(), 8U);
    EXPECT_EQ(std::accumulate(split.begin(), split.end(), std::int64_t{0}), 16);
    EXPECT_LE(loaded.run->parallel.excess->automatic, loaded.run->parallel.excess->even) << vocab;
  }
}

/// 3, 3, 2, 1 blocks have the faster slowest stage (50, not 60). But if rank 0 has stages 0 and 2, and rank 1 has
/// stages 1 and 3, rank 0 takes 90 instead of 80.
TEST(AutomaticSplit, IsEvenWhereARankWithSeveralStagesWouldTakeLonger) {
  cost::SplitProblem problem;
  problem.stages = 4;
  for (const std::int64_t time : {10, 20, 20, 10, 10, 20, 10, 30, 30}) problem.blocks.push_back({time, 0, 0});
  EXPECT_THAT(automatic_split(problem, {}), ElementsAre(3, 3, 2, 1));
  EXPECT_THAT(automatic_split(problem, {0, 1, 0, 1}), ElementsAre(3, 2, 2, 2));
  EXPECT_THAT(automatic_split(problem, {0, 1, 1, 0}), ElementsAre(3, 3, 2, 1));
}

/// Sizes that are too large are refused before a schedule or a layout is created for them.
TEST(AutomaticSplit, RefusesTooLargeSizesFirst) {
  const auto refusal_of = [](const Overrides& overrides) {
    const config::LoadResult loaded = resolved(with(kLargeHead, overrides));
    EXPECT_FALSE(loaded.run);
    return loaded.refusals.empty() ? Refusal() : loaded.refusals.front().refusal;
  };
  const Refusal world = refusal_of({{"parallel.pipeline", "65536"},
                                    {"parallel.tensor", "65536"},
                                    {"parallel.data", "65536"},
                                    {"batch.global", "65536"}});
  EXPECT_THAT(world.message, HasSubstr("more than 1048576 ranks"));
  EXPECT_EQ(world.hint, "use smaller sizes");
  const Refusal actions =
      refusal_of({{"parallel.chunks", "2"}, {"schedule.plugin", "sched-interleaved"}, {"batch.global", "16777216"}});
  EXPECT_THAT(actions.message, HasSubstr("more than 262144 actions in a step"));
  EXPECT_THAT(refusal_of({{"parallel.pipeline", "8192"}}).message, HasSubstr("8192 is more than 4096"));
}

/// stage_rank() uses the schedule of few microbatches.
TEST(StageRank, DoesNotDependOnMicrobatches) {
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  for (const char* const scheduler : {"sched-1f1b", "sched-interleaved", "sched-zb-v", "sched-breadth-first"}) {
    const bool has_chunks = std::string(scheduler) != "sched-1f1b";
    const config::LoadResult loaded = config::load(config::TomlText{kPlannedRun, "run.toml", "."},
                                                   {{"schedule.plugin", scheduler},
                                                    {"parallel.pipeline", "3"},
                                                    {"parallel.chunks", has_chunks ? "2" : "1"},
                                                    {"batch.global", "24"}},
                                                   {}, config::Purpose::plan);
    ASSERT_TRUE(loaded.run) << scheduler << ": " << loaded.refusals.front().text;
    const Layout layout = train::layout_of(*loaded.run);
    const train::RankPlugins plugins(*loaded.run, layout, 0, 1, null_log());
    EXPECT_EQ(plugins.stage_rank(), plugins.rows().stage_rank().at(0)) << scheduler;
  }
}

/// Each tensor rank keeps a part, and gathers it before the forward is repeated.
TEST(SplitProblem, DividesTheInputsOfRecomputedBlocks) {
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  const cost::Cluster cluster = *cost::read_cluster(kCluster).cluster;
  const auto first_block = [&](const char* partition, const SplitSettings& settings) {
    const config::LoadResult loaded =
        config::load(config::TomlText{kPlannedRun, "run.toml", "."}, {{"memory.partition_activations", partition}}, {},
                     config::Purpose::plan);
    LayerTable table(loaded.run.value(), cluster, *cost::code_named("triax"), null_log());
    return split_problem(table, settings).blocks.at(0);
  };
  const SplitSettings divided{.tensor = 4, .stages = 2, .recompute = Recompute::full};
  EXPECT_EQ(first_block("true", divided).flight_bytes * 4, first_block("false", divided).flight_bytes);
  // Times are in units of 1/2^30 of the time of all layers.
  EXPECT_GT(first_block("true", divided).time, first_block("false", divided).time);
  for (const SplitSettings& whole :
       {SplitSettings{.tensor = 4, .stages = 2, .sequence = true, .recompute = Recompute::full},
        SplitSettings{.tensor = 1, .stages = 2, .recompute = Recompute::full}, SplitSettings{.tensor = 4, .stages = 2}})
    EXPECT_EQ(first_block("true", whole), first_block("false", whole));
}

/// Outputs of two norms and of GELU: 6 h elements a token.
TEST(SplitProblem, LeavesOutWhatIsRecomputedCheaply) {
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  const config::LoadResult loaded =
      config::load(config::TomlText{kPlannedRun, "run.toml", "."}, {}, {}, config::Purpose::plan);
  const cost::Cluster cluster = *cost::read_cluster(kCluster).cluster;
  LayerTable table(loaded.run.value(), cluster, *cost::code_named("triax"), null_log());
  const auto first_block = [&](Recompute recompute) {
    return split_problem(table, {.stages = 2, .recompute = recompute}).blocks.at(0);
  };
  const cost::StageLoad none = first_block(Recompute::none), cheap = first_block(Recompute::cheap),
                        full = first_block(Recompute::full);
  EXPECT_EQ(none.flight_bytes - cheap.flight_bytes, 6 * 64 * 32 * 2);
  EXPECT_GT(cheap.flight_bytes, full.flight_bytes);
  // As a part of all layers, of which only blocks recompute.
  EXPECT_GT(cheap.time, none.time);
  EXPECT_GT(full.time, cheap.time);
  EXPECT_EQ(first_block(Recompute::optimal), none); // chosen after the split
}

TEST(AutomaticSplit, IsRefusedIfThePluginsDoNotSupportTheRecomputation) {
  const config::LoadResult loaded = resolved(with(kLargeHead, {{"plugins.path", "[\"" TEST_TRAIN_PLUGINS "\"]"},
                                                               {"comm.plugin", "comm-processes"},
                                                               {"kernels.plugin", "kernels-elsewhere"},
                                                               {"train.precision", "fp32"},
                                                               {"memory.recompute", "cheap"}}));
  EXPECT_FALSE(loaded.run);
  ASSERT_EQ(loaded.refusals.size(), 1U);
  EXPECT_THAT(loaded.refusals.front().text, HasSubstr("activations in f32 cannot be repeated"));
}

TEST(AutomaticSplit, IsRefusedWithTheReasonsOfThePlugins) {
  const config::LoadResult loaded = resolved(with(kLargeHead, {{"parallel.tensor", "3"}}));
  EXPECT_FALSE(loaded.run);
  ASSERT_FALSE(loaded.refusals.empty());
  EXPECT_THAT(loaded.refusals.front().text, HasSubstr("parallel.tensor = 3"));
  const config::LoadResult few = resolved(with(kLargeHead, {{"model.layers", "2"}}));
  EXPECT_FALSE(few.run);
  EXPECT_THAT(few.refusals.front().text, HasSubstr("model.layers = 2 is too few for 4 stages"));
}

/// A balanced plan has the split of a run with "auto" on the same cluster.
TEST(AutomaticSplit, IsThatOfThePlan) {
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  const config::LoadResult loaded = resolved(with(kLargeHead, {{"parallel.split_cluster", kCluster}}));
  ASSERT_TRUE(loaded.run);
  const cost::Cluster cluster = *cost::read_cluster(kCluster).cluster;
  const std::vector<config::PluginChoice> schedules = {loaded.run->schedule};
  SearchRequest asked{*loaded.run,
                      cluster,
                      make_space({*loaded.run, cluster, 4, {12, 1, 32}, {"sched-1f1b"}, true}),
                      schedules,
                      std::uint64_t{1} << 60,
                      512};
  PlanCosts costs(asked, *cost::code_named("triax"), null_log());
  TrainingPlan even{.pipeline = 4}, balanced{.pipeline = 4, .balanced = true};
  ASSERT_TRUE(costs.bounds(balanced));
  EXPECT_EQ(costs.split(balanced), loaded.run->parallel.split);
  EXPECT_LT(costs.time(balanced)->step(), costs.time(even)->step());
  EXPECT_LT(costs.time(balanced)->imbalance, costs.time(even)->imbalance);
  balanced.recompute = Recompute::cheap;
  ASSERT_TRUE(costs.bounds(balanced));
  EXPECT_EQ(
      costs.split(balanced),
      split_of(resolved(with(kLargeHead, {{"parallel.split_cluster", kCluster}, {"memory.recompute", "cheap"}}))));

  asked.space.pipeline = {4};
  asked.space.balanced = {true};
  asked.space.chunks = {2};
  for (const char* const vocab : {"20000", "200000", "3000000"}) {
    const config::LoadResult chunked = resolved(with(kLargeHead, {{"parallel.split_cluster", kCluster},
                                                                  {"parallel.chunks", "2"},
                                                                  {"schedule.plugin", "sched-interleaved"},
                                                                  {"model.vocab", vocab}}));
    ASSERT_TRUE(chunked.run);
    const std::vector<config::PluginChoice> interleaved = {chunked.run->schedule};
    const SearchRequest of_chunks{*chunked.run, cluster, asked.space, interleaved, asked.memory_limit, 512};
    PlanCosts chunk_costs(of_chunks, *cost::code_named("triax"), null_log());
    const TrainingPlan plan{.pipeline = 4, .chunks = 2, .balanced = true};
    ASSERT_TRUE(chunk_costs.bounds(plan));
    EXPECT_EQ(chunk_costs.split(plan), chunked.run->parallel.split) << vocab;
  }

  asked.space.balanced = {false, true};
  asked.space.chunks = {1};
  asked.space.micro = {1}; // many microbatches: the slowest stage decides
  PlanCosts of_four(asked, *cost::code_named("triax"), null_log());
  const SearchResult four = search_plans(of_four, LoadedPlanner("sweep", plugin::search_folders({}), null_log()), 1);
  ASSERT_EQ(four.plans.size(), 1U);
  EXPECT_TRUE(four.plans.front().plan.balanced);
  EXPECT_EQ(run_of(asked, four.plans.front().plan, four.plans.front().split).parallel.split, four.plans.front().split);
}

} // namespace
} // namespace triax::plan
