// SPDX-License-Identifier: Apache-2.0
// Sequence parallelism: results up to rounding of runs without it, equal bits over pipelines and schedules, less
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/rank_setup.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::RankTrace;
using test::TinyRun;

void divide_positions(TinyRun& run) {
  run.keys["model.layers"] = "4";
  run.keys["model.dropout"] = "0.2";
  run.keys["parallel.tensor"] = "2";
  run.keys["parallel.sequence"] = "true";
}

TEST(SequenceParallelism, ChangesResultsByRoundingOnly) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  run.keys["model.dropout"] = "0.2";
  run.keys["train.precision"] = "\"fp64\"";
  for (const char* data : {"1", "2"}) {
    run.keys["parallel.tensor"] = "2";
    run.keys["parallel.data"] = data;
    run.keys["parallel.sequence"] = "false";
    const std::vector<RankTrace> whole = test::train_ranks(run, 4);
    run.keys["parallel.sequence"] = "true";
    const std::vector<RankTrace> sharded = test::train_ranks(run, 4);
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      for (std::size_t step = 0; step < 4; ++step) {
        EXPECT_NEAR(sharded[rank].trace.losses[step], whole[rank].trace.losses[step], 1e-11);
        EXPECT_NEAR(sharded[rank].trace.norms[step], whole[rank].trace.norms[step], 1e-11);
      }
      EXPECT_NEAR(sharded[rank].held_out, whole[rank].held_out, 1e-11);
    }
  }
}

TEST(SequenceParallelism, HasEqualBitsOverPipelinesSchedulesAndRecomputation) {
  TinyRun run;
  divide_positions(run);
  const std::vector<RankTrace> one = test::train_ranks(run, 3);
  for (const char* schedule : {"sched-gpipe", "sched-zb-h1"})
    for (const char* recompute : {"none", "full"}) {
      run.keys["parallel.pipeline"] = "2";
      run.keys["schedule.plugin"] = text("\"{}\"", schedule);
      run.keys["memory.recompute"] = text("\"{}\"", recompute);
      const std::vector<RankTrace> two = test::train_ranks(run, 3);
      ASSERT_EQ(two.size(), 4u);
      for (std::size_t rank = 0; rank < two.size(); ++rank) {
        SCOPED_TRACE(text("{} {} rank {}", schedule, recompute, rank));
        const RankTrace& whole = one[rank % 2]; // with the same tensor rank
        EXPECT_EQ(two[rank].trace.losses, whole.trace.losses);
        EXPECT_EQ(two[rank].trace.norms, whole.trace.norms);
        EXPECT_EQ(two[rank].held_out, whole.held_out);
        for (const auto& [name, weights] : two[rank].weights) EXPECT_EQ(weights, whole.weights.at(name)) << name;
      }
    }
}

/// A block keeps 4 h elements per token on every tensor rank (its input, two norms, the stream between attention and
/// MLP) and 12 h / t: 10 h of two ranks, or 8 h if each has half of the positions.
TEST(SequenceParallelism, KeepsLessPerRank) {
  TinyRun run;
  run.keys["parallel.tensor"] = "2";
  run.keys["model.hidden"] = "64";
  run.keys["model.sequence"] = "32";
  run.keys["model.layers"] = "8";
  run.keys["batch.global"] = "16";
  const auto activations = [&run] {
    const config::RunConfig config = run.config();
    std::size_t bytes = 0;
    test::run_ranks(config, train::layout_of(config), [&](train::Rank& rank, int index) {
      for (const train::MemoryRow& row : rank.memory())
        if (index == 0 && std::string(row.what) == "activations") bytes = row.bytes;
    });
    return static_cast<double>(bytes);
  };
  const double whole = activations();
  run.keys["parallel.sequence"] = "true";
  EXPECT_NEAR(activations() / whole, 0.8, 0.02);
}

TEST(SequenceParallelism, IsRefusedWherePositionsAreNotDivisibleAndWithScatteredBoundaries) {
  TinyRun run;
  divide_positions(run);
  run.keys["model.sequence"] = "7";
  const auto refusals = [&run] {
    const config::RunConfig config = run.config();
    const Layout layout = train::layout_of(config);
    const train::RankPlugins plugins(config, layout, 0, 1, null_log());
    Refusals out = plugins.refusals(layout, train::choose_placement(config), false);
    if (out.empty()) out = train::check_schedule(config, plugins.model(), plugins.rows());
    return out;
  };
  ASSERT_EQ(refusals().size(), 1u);
  EXPECT_EQ(
      refusals().front().message,
      "model.sequence = 7 is not divisible by parallel.tensor = 2: with parallel.sequence each tensor rank has as "
      "many positions");
  run.keys["model.sequence"] = "6";
  run.keys["parallel.pipeline"] = "2";
  run.keys["parallel.scatter_gather"] = "true";
  ASSERT_EQ(refusals().size(), 1u);
  EXPECT_THAT(refusals().front().message,
              ::testing::HasSubstr("parallel.scatter_gather cannot be combined with parallel.sequence"));
}

} // namespace
} // namespace triax
