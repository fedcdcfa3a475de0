// SPDX-License-Identifier: Apache-2.0
// The communication of a step that a check reports is what the ranks then count, over each axis and product of axes:
// with recomputation, and with a further product. tests/equality has other layouts, test_sharding_plan.cpp divided
// state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/integer_program.hpp"
#include "train/preflight.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;

train::Preflight checked_without_data(const TinyRun& run) {
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  train::Preflight out = train::preflight(config, train::choose_placement(config), null_log());
  for (const Refusal& refusal : out.refusals) ADD_FAILURE() << refusal.message;
  return out;
}

using TrafficOfRanks = std::vector<std::vector<report::GroupTraffic>>; // by rank

/// Of one step, after it has been compared with the check.
TrafficOfRanks traffic_as_planned(const TinyRun& run) {
  const train::Preflight checked = checked_without_data(run);
  TrafficOfRanks out;
  for (test::RankTrace& rank : test::train_ranks(run, 1)) out.push_back(std::move(rank.traffic));
  std::size_t compared = 0;
  for (const train::RankPlan& plan : checked.plans)
    for (std::size_t i = 0; i < plan.ranks.size(); ++i, ++compared) {
      const std::vector<report::GroupTraffic>&planned = plan.traffic[i],
            &counted = out[static_cast<std::size_t>(plan.ranks[i])];
      SCOPED_TRACE(text("rank {}", plan.ranks[i]));
      EXPECT_EQ(planned.size(), counted.size());
      for (std::size_t group = 0; group < std::min(planned.size(), counted.size()); ++group) {
        EXPECT_EQ(planned[group].group, counted[group].group);
        EXPECT_EQ(planned[group].plugin, counted[group].plugin);
        EXPECT_EQ(planned[group].ops, counted[group].ops) << planned[group].group;
        EXPECT_EQ(planned[group].bytes_out, counted[group].bytes_out) << planned[group].group;
        EXPECT_EQ(planned[group].bytes_in, counted[group].bytes_in) << planned[group].group;
      }
    }
  EXPECT_EQ(compared, out.size());
  return out;
}

report::GroupTraffic over_tensor(const std::vector<report::GroupTraffic>& of_rank) {
  const auto found = std::ranges::find(of_rank, kTensorAxis, &report::GroupTraffic::group);
  return found == of_rank.end() ? report::GroupTraffic{} : *found;
}

struct TwoStagesOfTwoBlocks : TinyRun {
  TwoStagesOfTwoBlocks() {
    keys["model.layers"] = "4";
    keys["parallel.pipeline"] = "2";
    keys["parallel.tensor"] = "2";
    keys["schedule.plugin"] = "\"sched-1f1b\"";
  }
};

TEST(PlannedTraffic, OfRecomputedBlocksIsWhatRanksSend) {
  for (const char* schedule : {"sched-1f1b", "sched-zb-h1"})
    for (const char* sequence : {"false", "true"})
      for (const char* recompute : {R"("none")", R"("full")", R"("cheap")", R"(["full", "cheap"])"}) {
        SCOPED_TRACE(text("{}, sequence {}, {}", schedule, sequence, recompute));
        TwoStagesOfTwoBlocks run;
        run.keys["schedule.plugin"] = text("\"{}\"", schedule);
        run.keys["parallel.sequence"] = sequence;
        run.keys["memory.recompute"] = recompute;
        traffic_as_planned(run);
      }
}

TEST(PlannedTraffic, OfGroupsWithPartitionedInputsIsWhatRanksSend) {
  for (const char* scattered : {"false", "true"}) {
    SCOPED_TRACE(scattered);
    TwoStagesOfTwoBlocks run;
    run.keys["parallel.scatter_gather"] = scattered;
    run.keys["memory.recompute"] = "\"full\"";
    run.keys["memory.recompute_layers"] = "2";
    run.keys["memory.partition_activations"] = "true";
    traffic_as_planned(run);
  }
}

/// A repeated forward leaves out the sum that only the output of the block needs: one of its two all-reduces. What is
/// recomputed cheaply needs none.
TEST(PlannedTraffic, RepeatedForwardsSumOnceForEachBlock) {
  TwoStagesOfTwoBlocks run;
  const TrafficOfRanks none = traffic_as_planned(run);
  run.keys["memory.recompute"] = "\"full\"";
  const TrafficOfRanks full = traffic_as_planned(run);
  run.keys["memory.recompute"] = "\"cheap\"";
  const TrafficOfRanks cheap = traffic_as_planned(run);
  constexpr std::uint64_t kSums = 2 * 4;      // blocks of a stage, and microbatches
  constexpr std::uint64_t kBytes = 6 * 8 * 4; // 2 (t-1)/t of b s h elements of fp32
  ASSERT_EQ(none.size(), 4u);
  for (std::size_t rank = 0; rank < none.size(); ++rank) {
    SCOPED_TRACE(text("rank {}", rank));
    EXPECT_EQ(over_tensor(full[rank]).ops - over_tensor(none[rank]).ops, kSums);
    EXPECT_EQ(over_tensor(full[rank]).bytes_out - over_tensor(none[rank]).bytes_out, kSums * kBytes);
    EXPECT_EQ(over_tensor(cheap[rank]).ops, over_tensor(none[rank]).ops);
    EXPECT_EQ(over_tensor(cheap[rank]).bytes_out, over_tensor(none[rank]).bytes_out);
  }
}

/// In the memory of "full".
TEST(PlannedTraffic, OfChosenStepsIsWhatRanksSend) {
  if (const std::string error = cost::integer_solver_error(); !error.empty()) GTEST_SKIP() << error;
  for (const char* sequence : {"false", "true"}) {
    SCOPED_TRACE(sequence);
    TwoStagesOfTwoBlocks run;
    run.keys["parallel.sequence"] = sequence;
    run.keys["memory.recompute"] = "\"full\"";
    std::uint64_t most = 0;
    const train::Preflight full = checked_without_data(run);
    for (const train::RankPlan& plan : full.plans) {
      std::uint64_t bytes = 0;
      for (const executor::ActivationPart& part : plan.activations) bytes += part.total();
      most = std::max(most, bytes);
    }
    run.keys["memory.recompute"] = "\"optimal\"";
    run.keys["memory.activation_budget"] = text("\"{} B\"", most);
    traffic_as_planned(run);
  }
}

TEST(PlannedTraffic, OverAProductOfAxesIsWhatRanksSend) {
  TinyRun run;
  test::use_divided_model(run);
  run.keys["parallel.pipeline"] = run.keys["parallel.tensor"] = run.keys["parallel.data"] = "2";
  const TrafficOfRanks traffic = traffic_as_planned(run);
  EXPECT_EQ(traffic.size(), 8u);
  EXPECT_THAT(traffic, Each(Contains(Field(&report::GroupTraffic::group, "tensor*data"))));
}

} // namespace
} // namespace triax
