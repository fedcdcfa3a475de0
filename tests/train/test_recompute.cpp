// SPDX-License-Identifier: Apache-2.0
// Recomputed blocks: the same bits as kept ones, with less memory.
#include <gtest/gtest.h>

#include <algorithm>

#include "train/preflight.hpp"
#include "train/rank_setup.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;

std::size_t activations_of(const TinyRun& run) {
  test::TinyRank rank(run);
  for (const train::MemoryRow& row : rank->memory())
    if (std::string(row.what) == "activations") return row.bytes;
  return 0;
}

/// With dropout, and both kinds of backward passes.
TEST(Recompute, ChangesNoBit) {
  for (const char* schedule : {"sched-gpipe", "sched-zb-h1"})
    for (const char* kernels : {"kernels-reference", "kernels-cpu"})
      for (const char* precision : {"fp32", "bf16"}) {
        if (std::string(kernels) == "kernels-reference" && std::string(precision) == "bf16") continue;
        SCOPED_TRACE(text("{} {} {}", schedule, kernels, precision));
        TinyRun run;
        run.keys["schedule.plugin"] = text("\"{}\"", schedule);
        run.keys["kernels.plugin"] = text("\"{}\"", kernels);
        run.keys["train.precision"] = text("\"{}\"", precision);
        run.keys["model.dropout"] = "0.3";
        const test::Trace kept = test::train(run, 3);
        run.keys["memory.recompute"] = "\"full\"";
        EXPECT_EQ(test::train(run, 3), kept);
      }
}

TEST(Recompute, ChangesNoBitOfSeveralRanks) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  run.keys["parallel.tensor"] = "2";
  run.keys["parallel.pipeline"] = "2";
  run.keys["schedule.plugin"] = "\"sched-zb-h1\"";
  const std::vector<test::RankTrace> kept = test::train_ranks(run, 3);
  run.keys["memory.recompute"] = "\"full\"";
  const std::vector<test::RankTrace> recomputed = test::train_ranks(run, 3);
  ASSERT_EQ(recomputed.size(), 4u);
  for (std::size_t rank = 0; rank < recomputed.size(); ++rank) {
    EXPECT_EQ(recomputed[rank].trace, kept[rank].trace) << rank;
    EXPECT_EQ(recomputed[rank].held_out, kept[rank].held_out) << rank;
  }
}

/// Groups of blocks in stages of five and four, with whole and split backwards.
TEST(Recompute, OfGroupsOfBlocksChangesNoBit) {
  for (const char* schedule : {"sched-gpipe", "sched-zb-h1"})
    for (const char* precision : {"fp32", "bf16"}) {
      SCOPED_TRACE(text("{} {}", schedule, precision));
      TinyRun run;
      run.keys["model.layers"] = "9";
      run.keys["parallel.tensor"] = "2";
      run.keys["parallel.pipeline"] = "2";
      run.keys["parallel.sequence"] = text("{}", std::string(schedule) == "sched-gpipe");
      run.keys["model.dropout"] = "0.1";
      run.keys["schedule.plugin"] = text("\"{}\"", schedule);
      run.keys["kernels.plugin"] = "\"kernels-cpu\"";
      run.keys["train.precision"] = text("\"{}\"", precision);
      const std::vector<test::RankTrace> kept = test::train_ranks(run, 2);
      run.keys["memory.recompute"] = "\"full\"";
      for (const char* layers : {"0", "2", "3", "7"}) {
        SCOPED_TRACE(layers);
        run.keys["memory.recompute_layers"] = layers;
        const std::vector<test::RankTrace> recomputed = test::train_ranks(run, 2);
        ASSERT_EQ(recomputed.size(), 4u);
        for (std::size_t rank = 0; rank < recomputed.size(); ++rank) {
          EXPECT_EQ(recomputed[rank].trace, kept[rank].trace) << rank;
          EXPECT_EQ(recomputed[rank].weights, kept[rank].weights) << rank;
          EXPECT_EQ(recomputed[rank].held_out, kept[rank].held_out) << rank;
        }
      }
    }
}

/// An input for each group and microbatch, and the stash of a group once: the automatic number needs no more than any
/// other. The allocated memory is that of the plan.
TEST(Recompute, OfGroupsOfBlocksNeedsLeastMemoryWithTheAutomaticNumber) {
  for (const char* batch : {"2", "16", "64"}) {
    SCOPED_TRACE(batch);
    TinyRun run;
    run.keys["model.layers"] = "12";
    run.keys["model.hidden"] = "32";
    run.keys["model.sequence"] = "16";
    run.keys["batch.global"] = batch;
    run.keys["memory.recompute"] = "\"full\"";
    const std::size_t single = activations_of(run);
    run.keys["memory.recompute_layers"] = "0";
    const std::size_t least = activations_of(run);
    for (const char* layers : {"1", "2", "3", "4", "6", "12"}) {
      run.keys["memory.recompute_layers"] = layers;
      EXPECT_LE(least, activations_of(run)) << layers;
    }
    if (std::string(batch) == "64") {
      EXPECT_LT(least, single / 2);
    }
    run.keys["memory.recompute_layers"] = "3";
    config::RunConfig config = run.config();
    config.data.training.paths.clear(); // a plan needs no samples
    const train::Preflight planned = train::preflight(config, train::choose_placement(config), null_log());
    const std::vector<train::MemoryRow>& memory = planned.plans.front().memory;
    const auto is_activations = [](const train::MemoryRow& row) { return std::string(row.what) == "activations"; };
    EXPECT_EQ(std::ranges::find_if(memory, is_activations)->bytes, activations_of(run));
  }
}

TEST(Recompute, IsRefusedByAModelWithoutIt) {
  TinyRun run;
  test::use_divided_model(run);
  run.keys["memory.recompute"] = "\"full\"";
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  const train::RankPlugins plugins(config, layout, 0, 1, null_log());
  const Refusals all = plugins.refusals(layout, train::choose_placement(config), false);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().message, "model-divided has neither sequence parallelism nor recomputation");
}

/// The programs of two stages of two blocks; the second ends with the head, whose backward is first.
TEST(Recompute, PrecedesTheWaitForTheGradientOfALastBlock) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  run.keys["parallel.pipeline"] = "2";
  run.keys["schedule.plugin"] = "\"sched-1f1b\"";
  const auto recomputed = [&run](const std::string& recompute) {
    run.keys["memory.recompute"] = recompute;
    const config::RunConfig config = run.config();
    const Layout layout = train::layout_of(config);
    const train::RankPlugins plugins(config, layout, 0, 1, null_log());
    const train::Programs programs =
        train::make_programs(config, layout, plugins, train::schedule_of(config, plugins, nullptr));
    std::string out;
    for (const schedule::Program& program : programs.training) {
      EXPECT_FALSE(programs.evaluation[static_cast<std::size_t>(program.rank())].has(schedule::Kind::recompute));
      out += program.has(schedule::Kind::recompute) ? "R" : "-";
    }
    return out;
  };
  EXPECT_EQ(recomputed("\"none\""), "--");
  EXPECT_EQ(recomputed("\"full\""), "R-");
  EXPECT_EQ(recomputed("\"cheap\""), "R-");
  EXPECT_EQ(recomputed("[\"none\", \"full\"]"), "--");
}

/// Groups, of which R repeats the last, with partitioned inputs, and stages of a rank that share weights' memory.
TEST(Recompute, OfSeveralStagesOfARankChangesNoBit) {
  for (const char* schedule : {"sched-interleaved", "sched-zb-v", "sched-breadth-first"})
    for (const bool shards : {false, true}) {
      SCOPED_TRACE(text("{} {}", schedule, shards));
      TinyRun run;
      run.keys["model.layers"] = "8";
      run.keys["model.dropout"] = "0.1";
      run.keys["parallel.pipeline"] = "2";
      run.keys["parallel.chunks"] = "2";
      run.keys[shards ? "parallel.data" : "parallel.tensor"] = "2";
      run.keys["batch.global"] = "8";
      run.keys["schedule.plugin"] = text("\"{}\"", schedule);
      if (shards) run.keys["optimizer.shard"] = "\"parameters\"";
      const std::vector<test::RankTrace> kept = test::train_ranks(run, 2);
      run.keys["memory.recompute"] = "\"full\"";
      run.keys["memory.partition_activations"] = text("{}", !shards);
      for (const char* layers : {"1", "2"}) {
        run.keys["memory.recompute_layers"] = layers;
        const std::vector<test::RankTrace> recomputed = test::train_ranks(run, 2);
        ASSERT_EQ(recomputed.size(), kept.size());
        for (std::size_t rank = 0; rank < recomputed.size(); ++rank) {
          EXPECT_EQ(recomputed[rank].trace, kept[rank].trace) << rank;
          EXPECT_EQ(recomputed[rank].weights, kept[rank].weights) << rank;
          EXPECT_EQ(recomputed[rank].held_out, kept[rank].held_out) << rank;
        }
      }
    }
}

/// GPipe keeps all microbatches: each keeps one tensor per block instead of a whole stash.
TEST(Recompute, NeedsLessMemory) {
  TinyRun run;
  run.keys["model.layers"] = "6";
  run.keys["model.hidden"] = "64";
  run.keys["model.sequence"] = "32";
  run.keys["batch.global"] = "8";
  const std::size_t kept = activations_of(run);
  run.keys["memory.recompute"] = "\"full\"";
  EXPECT_LT(activations_of(run), kept / 3);
}

} // namespace
} // namespace triax
