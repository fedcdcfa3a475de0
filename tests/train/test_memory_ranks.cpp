// SPDX-License-Identifier: Apache-2.0
// A search plans the ranks that can need most: the most of these is that of all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "executor/sample_model.hpp"
#include "schedule/lower.hpp"
#include "schedule/rows.hpp"
#include "train/memory_ranks.hpp"
#include "train/preflight_run.hpp"

namespace triax {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

/// GPipe on four ranks, so that all stages have as many slots; rank 3 has the loss.
train::Programs gpipe() {
  const PipelineShape shape{4, 1, 2};
  const Schedule schedule = test::schedule_of(
      shape, {0, 1, 2, 3}, {"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1", "2F0 2F1 2B0 2B1", "3F0 3F1 3B0 3B1"});
  return {schedule::lower(schedule, shape), schedule::lower_forward_only(schedule, shape), {}};
}

TEST(MemoryRanks, EqualRanksArePlannedOnce) {
  const std::vector<executor::StageLayers> split = {{0, 2}, {2, 1}, {3, 1}, {4, 2}};
  const std::vector<int> kinds = {0, 1, 1, 1, 1, 2};
  EXPECT_THAT(train::ranks_of_most_memory(gpipe(), split, kinds), ElementsAre(0, 1, 3));
}

TEST(MemoryRanks, OneWithMoreLayersCoversOthers) {
  const std::vector<executor::StageLayers> split = {{0, 2}, {2, 1}, {3, 2}, {5, 2}};
  const std::vector<int> kinds = {0, 1, 1, 1, 1, 1, 2};
  EXPECT_THAT(train::ranks_of_most_memory(gpipe(), split, kinds), ElementsAre(0, 2, 3));
}

TEST(MemoryRanks, LayersOfAnotherKindAreNotCovered) {
  const std::vector<executor::StageLayers> split = {{0, 2}, {2, 1}, {3, 2}, {5, 2}};
  const std::vector<int> kinds = {0, 1, 3, 1, 1, 1, 2};
  EXPECT_THAT(train::ranks_of_most_memory(gpipe(), split, kinds), ElementsAre(0, 1, 2, 3));
}

TEST(MemoryRanks, MoreSlotsAreNotCovered) {
  train::Programs programs = gpipe();
  std::vector<schedule::Slots> slots = programs.training[2].rank_slots().of_stages;
  ++slots.front()[static_cast<std::size_t>(schedule::Pool::stash_i)];
  programs.training[2] = programs.training[2].with_slots(slots);
  const std::vector<executor::StageLayers> split = {{0, 2}, {2, 1}, {3, 1}, {4, 2}};
  const std::vector<int> kinds = {0, 1, 1, 1, 1, 2};
  EXPECT_THAT(train::ranks_of_most_memory(programs, split, kinds), ElementsAre(0, 2, 3));
}

TEST(MemoryRanks, SlotsAloneNameTheSameRanks) {
  const train::Programs programs = gpipe();
  train::ProgramSlots slots;
  for (const schedule::Program& program : programs.training) slots.training.push_back(program.rank_slots());
  for (const schedule::Program& program : programs.evaluation) slots.evaluation.push_back(program.rank_slots());
  const schedule::StageMap& stage_map = programs.training.front().stage_map();
  const std::vector<executor::StageLayers> split = {{0, 2}, {2, 1}, {3, 1}, {4, 2}};
  const std::vector<int> kinds = {0, 1, 1, 1, 1, 2};
  EXPECT_THAT(train::ranks_of_most_memory(slots, stage_map, split, kinds), ElementsAre(0, 1, 3));
  ++slots.evaluation[2].of_stages.front()[static_cast<std::size_t>(schedule::Pool::stash_i)];
  EXPECT_THAT(train::ranks_of_most_memory(slots, stage_map, split, kinds), ElementsAre(0, 2, 3));
  ++slots.training[1].accumulators;
  EXPECT_THAT(train::ranks_of_most_memory(slots, stage_map, split, kinds), ElementsAre(0, 1, 2, 3));
}

TEST(MemoryRanks, AStageThatRecomputesIsNotCovered) {
  const std::vector<executor::StageLayers> split = {{0, 2}, {2, 1}, {3, 1}, {4, 2}};
  const std::vector<int> kinds = {0, 1, 1, 1, 1, 2};
  config::RunConfig::MemoryKeys memory;
  memory.recompute = config::PerStage<std::string>::listed({"none", "none", "full", "none"});
  EXPECT_THAT(train::ranks_of_most_memory(gpipe(), split, kinds, memory), ElementsAre(0, 1, 2, 3));
}

TEST(MemoryRanks, AStageWithOtherStepsIsNotCovered) {
  const std::vector<executor::StageLayers> split = {{0, 2}, {2, 1}, {3, 1}, {4, 2}};
  const std::vector<int> kinds = {0, 1, 1, 1, 1, 2};
  train::Programs programs = gpipe();
  programs.chosen.resize(4);
  for (std::vector<train::ChosenBlock>& blocks : programs.chosen) blocks.emplace_back().steps = {{0}, {1}};
  EXPECT_THAT(train::ranks_of_most_memory(programs, split, kinds), ElementsAre(0, 1, 3));
  programs.chosen[2].front().steps.dropped = {1, 2};
  EXPECT_THAT(train::ranks_of_most_memory(programs, split, kinds), ElementsAre(0, 1, 2, 3));
}

/// The kinds of two layers that differ in what `change` does to the second.
std::vector<int> kinds_of(const std::function<void(test::SampleSpec&)>& change) {
  test::SampleModel model;
  const test::SampleSpec layer{.name = "block",
                               .params = {test::sample_param("weight", {4, 4})},
                               .stash = {{.name = "kept", .shape = {4}}},
                               .inputs = {{.name = "hidden", .shape = {4}}},
                               .outputs = {{.name = "hidden", .shape = {4}}}};
  model.specs = {layer, layer};
  model.specs[1].name = "block 1";
  change(model.specs[1]);
  const Layout layout = Layout::ptd(1, 1, 1);
  return train::layer_kinds(model, {.layout = layout});
}

TEST(MemoryRanks, AKindIsAllThatMemoryDependsOn) {
  using Spec = test::SampleSpec;
  EXPECT_THAT(kinds_of([](Spec&) {}), ElementsAre(0, 0));
  EXPECT_THAT(kinds_of([](Spec& of) { of.params[0].local = {2, 4}; }), ElementsAre(0, 1));
  EXPECT_THAT(kinds_of([](Spec& of) { of.params[0].cuts = {{"tensor", 0, 0, 4}}; }), ElementsAre(0, 1));
  EXPECT_THAT(kinds_of([](Spec& of) { of.params[0].partial = {"tensor"}; }), ElementsAre(0, 1));
  EXPECT_THAT(kinds_of([](Spec& of) { of.stash[0].life = Life::forward_to_weight; }), ElementsAre(0, 1));
  EXPECT_THAT(kinds_of([](Spec& of) { of.inputs[0].sharded = true; }), ElementsAre(0, 1));
  EXPECT_THAT(kinds_of([](Spec& of) { of.recomputed = {0}; }), ElementsAre(0, 1));
  EXPECT_THAT(kinds_of([](Spec& of) { of.steps = {{"all", {0}, {}}}; }), ElementsAre(0, 1));
  EXPECT_THAT(kinds_of([](Spec& of) { of.outputs[0].dtype = DType::bf16; }), ElementsAre(0, 1));
}

class MemoryRanksOf : public test::PreflightTest {
 protected:
  /// Bytes of the rank that needs most, and the number of planned ranks.
  std::pair<std::uint64_t, std::size_t> most(train::PlannedRanks planned) {
    const config::RunConfig config = run_.config();
    const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log(), {}, planned);
    EXPECT_TRUE(checked.refusals.empty());
    std::uint64_t out = 0;
    for (const train::RankPlan& plan : checked.plans) out = std::max(out, plan.bytes());
    return {out, checked.plans.size()};
  }
};

TEST_F(MemoryRanksOf, RunsTheMostIsThatOfAllRanks) {
  const std::vector<std::map<std::string, std::string>> kChanges = {
      {},
      {{"parallel.tensor", "2"}}, // 257 tokens: parts of unequal size
      {{"schedule.plugin", "\"sched-interleaved\""}, {"parallel.chunks", "2"}},
      {{"schedule.plugin", "\"sched-zb-v\""}, {"parallel.chunks", "2"}},
      {{"memory.recompute", "\"full\""}, {"memory.recompute_layers", "0"}},
      {{"memory.recompute", R"(["full", "none", "full", "none", "none", "none"])"}},
      {{"memory.recompute", "\"cheap\""}},
      {{"memory.recompute", R"(["cheap", "none", "cheap", "full", "cheap", "none"])"}},
      {{"parallel.data", "2"}, {"optimizer.shard", "\"parameters\""}},
      {{"parallel.split", "[3, 2, 4, 1, 4, 2]"}},
      {{"eval.sample", "\"abc\""}, {"eval.every", "1"}, {"data.validation", "\"text\""}},
  };
  std::size_t left_out = 0;
  for (const auto& changes : kChanges) {
    const std::map<std::string, std::string> before = run_.keys;
    for (const auto& [key, value] : std::map<std::string, std::string>{{"model.layers", "16"},
                                                                       {"parallel.pipeline", "6"},
                                                                       {"schedule.plugin", "\"sched-1f1b\""},
                                                                       {"batch.global", "24"}})
      run_.keys[key] = value;
    for (const auto& [key, value] : changes) run_.keys[key] = value;
    const auto [all, planned] = most(train::PlannedRanks::all);
    const auto [found, fewer] = most(train::PlannedRanks::of_most_memory);
    EXPECT_EQ(found, all) << ::testing::PrintToString(changes);
    EXPECT_LE(fewer, planned);
    left_out += planned - fewer;
    run_.keys = before;
  }
  EXPECT_GT(left_out, 15U);
}

TEST_F(MemoryRanksOf, TensorRanksWithEqualPartsArePlannedOnce) {
  run_.keys["model.layers"] = "16";
  run_.keys["parallel.pipeline"] = "4";
  run_.keys["parallel.tensor"] = "2";
  run_.keys["batch.global"] = "24";
  const config::RunConfig config = run_.config();
  const auto checked =
      train::preflight(config, train::choose_placement(config), null_log(), {}, train::PlannedRanks::of_most_memory);
  std::vector<std::pair<int, int>> planned;
  for (const train::RankPlan& plan : checked.plans) planned.emplace_back(plan.pipeline, plan.tensor);
  // The logits of 257 tokens are unequal. Their weights, which the embedding shares, have one row more.
  EXPECT_THAT(planned, ElementsAre(Pair(0, 0), Pair(1, 0), Pair(3, 0), Pair(3, 1)));
}

} // namespace
} // namespace triax
