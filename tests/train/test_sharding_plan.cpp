// SPDX-License-Identifier: Apache-2.0
// The check of optimizer.shard: memory as the formulas say, and the memory and the communication that ranks then have.
#include <gtest/gtest.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "train/preflight_run.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

class ShardingPlan : public test::PreflightTest {
 protected:
  train::Preflight plan(const std::string& shard) {
    run_.keys["optimizer.shard"] = text("\"{}\"", shard);
    const config::RunConfig config = run_.config();
    train::Preflight out = train::preflight(config, train::choose_placement(config), null_log());
    EXPECT_TRUE(out.refusals.empty());
    return out;
  }
  void expect_planned(const std::string& shard);
  static double bytes_of(const train::Preflight& of, const std::string& what) {
    for (const train::MemoryRow& row : of.plans.front().memory)
      if (row.what == what) return static_cast<double>(row.bytes);
    return 0;
  }
};

/// Rajbhandari et al., "ZeRO", SC'20, section 3: with mixed precision, 2 bytes of a parameter are working weights, and
/// 12 are the optimizer's state with the master weights. The gradients here are fp32, 4 bytes.
TEST_F(ShardingPlan, HasTheMemoryOfTheFormulas) {
  run_.keys["parallel.data"] = run_.keys["batch.global"] = "4";
  run_.keys["model.hidden"] = "64";
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  for (const char* precision : {"bf16", "fp32"}) {
    run_.keys["train.precision"] = text("\"{}\"", precision);
    const bool mixed = std::string(precision) == "bf16";
    const train::Preflight whole = plan("none"), divided = plan("states");
    const auto parameters = static_cast<double>(whole.parameters);
    const double tolerance = 0.2 * parameters; // bytes: alignment, and rows that pad the table
    EXPECT_NEAR(bytes_of(whole, "weights"), 4 * parameters, tolerance);
    EXPECT_NEAR(bytes_of(divided, "weights"), mixed ? 4 * parameters / 4 : 4 * parameters, tolerance);
    EXPECT_NEAR(bytes_of(divided, "working weights"), mixed ? 2 * parameters : 0, tolerance);
    EXPECT_NEAR(bytes_of(whole, "optimizer state"), 8 * parameters, tolerance);
    EXPECT_NEAR(bytes_of(divided, "optimizer state"), 8 * parameters / 4, tolerance);
    EXPECT_EQ(bytes_of(divided, "activations"), bytes_of(whole, "activations"));
  }
}

/// Each rank keeps 4 + 2 + 8 bytes of a parameter of its part, and has the working weights and gradients of two stages.
/// With the paper's 2 bytes of a gradient in place of 4, these are 16 / d.
TEST_F(ShardingPlan, OfParametersHasTheMemoryOfTheFormulas) {
  run_.keys["parallel.data"] = run_.keys["batch.global"] = "4";
  run_.keys["model.hidden"] = "64";
  run_.keys["model.layers"] = "16";
  run_.keys["parallel.chunks"] = "8";
  run_.keys["schedule.plugin"] = "\"sched-breadth-first\"";
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  for (const char* precision : {"bf16", "fp32"}) {
    run_.keys["train.precision"] = text("\"{}\"", precision);
    const bool mixed = std::string(precision) == "bf16";
    const train::Preflight divided = plan("parameters");
    EXPECT_TRUE(divided.saves_weights);
    const auto parameters = static_cast<double>(divided.parameters);
    const double tolerance = 0.05 * 4 * parameters, // alignment, and rows that pad the table
        table = 257.0 * 64,                         // in the first stage, and tied in the last
        stage = 2 * (12.0 * 64 * 64 + 13 * 64) + table, slots = 2 * stage * (mixed ? 2 : 4);
    EXPECT_NEAR(bytes_of(divided, "weights"), 4 * parameters / 4 + (mixed ? 0 : slots), tolerance);
    EXPECT_NEAR(bytes_of(divided, "working weights"), mixed ? 2 * parameters / 4 + slots : 0, tolerance);
    EXPECT_NEAR(bytes_of(divided, "optimizer state"), 8 * parameters / 4, tolerance);
    EXPECT_NEAR(bytes_of(divided, "gradients"), 4 * (parameters + table) / 4 + 2 * stage * 4, tolerance);
  }
  run_.keys["optimizer.prefetch"] = "7";
  EXPECT_FALSE(plan("parameters").saves_weights);
  run_.keys["optimizer.prefetch"] = "1";
  run_.keys["parallel.chunks"] = "1";
  EXPECT_FALSE(plan("parameters").saves_weights);
}

/// Breadth-first: a rank accumulates gradients of two of its eight stages at a time.
TEST_F(ShardingPlan, SharesTheAccumulatorsOfStagesThatAccumulateInTurn) {
  run_.keys["parallel.data"] = run_.keys["batch.global"] = "4";
  run_.keys["model.hidden"] = "64";
  run_.keys["model.layers"] = "16";
  run_.keys["parallel.chunks"] = "8";
  run_.keys["schedule.plugin"] = "\"sched-breadth-first\"";
  const train::Preflight whole = plan("states"), divided = plan("gradients");
  EXPECT_TRUE(divided.shares_accumulators);
  EXPECT_FALSE(whole.shares_accumulators);
  const double bytes = 4 * static_cast<double>(whole.parameters), block = 4 * (12.0 * 64 * 64 + 13 * 64),
               table = 4 * 257.0 * 64; // in the first stage, and tied in the last
  EXPECT_NEAR(bytes_of(whole, "gradients"), bytes + table, 0.05 * bytes);
  EXPECT_NEAR(bytes_of(divided, "gradients"), 2 * (2 * block + table) + (bytes + table) / 4, 0.05 * bytes);
  EXPECT_LT(bytes_of(divided, "gradients"), 0.7 * bytes_of(whole, "gradients"));
  run_.keys["parallel.chunks"] = "1";
  EXPECT_FALSE(plan("gradients").shares_accumulators);
}

/// The memory and the communication of each rank are those that were planned.
TEST_F(ShardingPlan, IsWhatRanksTakeAndSend) {
  for (const char* shard : {"states", "gradients", "parameters"}) expect_planned(shard);
  run_.keys["parallel.chunks"] = "8";
  run_.keys["model.layers"] = "24";
  run_.keys["schedule.plugin"] = "\"sched-breadth-first\"";
  EXPECT_TRUE(plan("gradients").shares_accumulators);
  expect_planned("gradients");
  EXPECT_TRUE(plan("parameters").saves_weights);
  expect_planned("parameters");
}

/// optim-lamb adds squares over data ranks, and over tensor ranks.
TEST_F(ShardingPlan, OfTrustRatiosIsWhatRanksTakeAndSend) {
  run_.keys["optimizer.plugin"] = "\"optim-lamb\"";
  for (const char* shard : {"none", "states", "gradients", "parameters"}) expect_planned(shard);
}

/// optim-muon adds Gram matrices over tensor ranks, and gathers parts over data ranks.
TEST_F(ShardingPlan, OfMatricesIsWhatRanksTakeAndSend) {
  run_.keys["optimizer.plugin"] = "\"optim-muon\"";
  for (const char* shard : {"none", "states", "gradients", "parameters"}) expect_planned(shard);
}

void ShardingPlan::expect_planned(const std::string& shard) {
  SCOPED_TRACE(shard);
  run_.keys["parallel.data"] = "3";
  run_.keys["batch.global"] = "6";
  run_.keys["parallel.tensor"] = "2";
  run_.keys["parallel.sequence"] = "true"; // buckets over a product of axes
  run_.keys["train.precision"] = "\"bf16\"";
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  const train::Preflight planned = plan(shard);
  const config::RunConfig config = run_.config();
  std::mutex mutex;
  test::run_ranks(config, train::layout_of(config), [&](train::Rank& rank, int number) {
    rank.step();
    const std::lock_guard lock(mutex);
    for (const train::RankPlan& of : planned.plans)
      for (std::size_t i = 0; i < of.ranks.size(); ++i) {
        if (of.ranks[i] != number) continue;
        const std::vector<train::MemoryRow> memory = rank.memory();
        ASSERT_LE(memory.size(), of.memory.size());
        for (std::size_t row = 0; row < memory.size(); ++row)
          EXPECT_EQ(memory[row].bytes, of.memory[row].bytes) << memory[row].what;
        const std::vector<report::GroupTraffic> counted = rank.traffic();
        ASSERT_EQ(counted.size(), of.traffic[i].size());
        for (std::size_t group = 0; group < counted.size(); ++group) {
          EXPECT_EQ(counted[group].ops, of.traffic[i][group].ops) << counted[group].group;
          EXPECT_EQ(counted[group].bytes_out, of.traffic[i][group].bytes_out) << counted[group].group;
          EXPECT_EQ(counted[group].bytes_in, of.traffic[i][group].bytes_in) << counted[group].group;
        }
      }
  });
}

} // namespace
} // namespace triax
