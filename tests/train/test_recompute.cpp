// SPDX-License-Identifier: Apache-2.0
// Recomputed blocks: the same bits as kept ones, with less memory.
#include <gtest/gtest.h>

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
