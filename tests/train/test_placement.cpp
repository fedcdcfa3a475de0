// SPDX-License-Identifier: Apache-2.0
// How ranks share cores, and the text that describes it.
#include <gtest/gtest.h>

#include "train/rank_placement.hpp"
#include "train/tiny_run.hpp"

namespace triax {
namespace {

using train::Placement;

TEST(Placement, CoresAreSharedAndEachRankHasOneThreadAtLeast) {
  EXPECT_EQ((Placement{1, 6}.threads_per_rank()), 6);
  EXPECT_EQ((Placement{4, 6}.threads_per_rank()), 1);
  EXPECT_EQ((Placement{2, 6}.threads_per_rank()), 3);
  EXPECT_EQ((Placement{8, 6}.threads_per_rank()), 1);
}

TEST(Placement, ReadsAsASentence) {
  const DeviceKind host = DeviceKind::host;
  EXPECT_EQ(to_text(Placement{1, 2}, host, 2), "1 rank, 2 CPU threads");
  EXPECT_EQ(to_text(Placement{1, 1}, host, 1), "1 rank, 1 CPU thread");
  EXPECT_EQ(to_text(Placement{8, 2}, host, 1), "8 ranks as threads of this process, 1 CPU thread each on 2 cores");
  EXPECT_EQ(to_text(Placement{4, 1}, host, 1), "4 ranks as threads of this process, 1 CPU thread each on 1 core");
  EXPECT_EQ(to_text(Placement{2, 8, false}, host, 4), "2 ranks as processes, 4 CPU threads each on 8 cores");
}

/// A kernel set may use more or fewer threads than a rank's share of the cores.
TEST(Placement, ReportsTheThreadsThatAreUsed) {
  const DeviceKind host = DeviceKind::host;
  EXPECT_EQ(to_text(Placement{1, 2}, host, 65), "1 rank, 65 CPU threads on 2 cores");
  EXPECT_EQ(to_text(Placement{2, 8}, host, 1), "2 ranks as threads of this process, 1 CPU thread each on 8 cores");
  EXPECT_EQ(to_text(Placement{2, 8, false}, {}, 1), "2 ranks as processes");
}

TEST(Placement, SpeaksOfThreadsWhereTheyCompute) {
  EXPECT_EQ(to_text(Placement{1, 2}, DeviceKind::cuda, 1), "1 rank, computing on a GPU");
  EXPECT_EQ(to_text(Placement{2, 8, false}, DeviceKind::cuda, 1), "2 ranks as processes, computing on GPUs");
  EXPECT_EQ(to_text(Placement{1, 2}, DeviceKind::sim, 1), "1 rank, its time modelled");
  EXPECT_EQ(to_text(Placement{8, 2}, DeviceKind::sim, 1), "8 ranks as threads of this process, their time modelled");
}

TEST(Placement, HereAreAllRanksAlsoWhenTheyAreBeyondMeasure) {
  config::RunConfig run;
  run.parallel.pipeline = 2;
  run.parallel.tensor = 3;
  run.parallel.data = 4;
  EXPECT_EQ(train::choose_placement(run).ranks, 24);
  EXPECT_GE(train::choose_placement(run).cores, 1);
  run.parallel.pipeline = run.parallel.tensor = run.parallel.data = 65536;
  EXPECT_GT(train::choose_placement(run).ranks, 1 << 20);
}

TEST(Placement, RanksAreThreadsWhereACommunicatorJoinsOnlyThose) {
  test::TinyRun run;
  EXPECT_TRUE(train::choose_placement(run.config()).ranks_are_threads) << "one rank";
  run.keys["parallel.data"] = "2";
  EXPECT_TRUE(train::choose_placement(run.config()).ranks_are_threads) << "comm-local";
  run.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run.keys["comm.plugin"] = "\"comm-processes\"";
  EXPECT_FALSE(train::choose_placement(run.config()).ranks_are_threads);
  run.keys["comm.data.plugin"] = "\"comm-local\"";
  EXPECT_TRUE(train::choose_placement(run.config()).ranks_are_threads) << "one axis with comm-local";
}

} // namespace
} // namespace triax
