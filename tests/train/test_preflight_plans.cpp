// SPDX-License-Identifier: Apache-2.0
// What preflight reports about a valid run: memory, parameters and balance of its ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "train/preflight_run.hpp"

namespace triax {
namespace {

using test::PreflightTest;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;

void expect_same_memory(const std::vector<train::MemoryRow>& planned, const std::vector<train::MemoryRow>& real) {
  ASSERT_EQ(planned.size(), real.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    EXPECT_EQ(planned[i].what, real[i].what);
    EXPECT_EQ(planned[i].bytes, real[i].bytes) << real[i].what;
  }
}

/// Memory that each rank allocates.
std::vector<std::vector<train::MemoryRow>> memory_of_ranks(const config::RunConfig& config) {
  const Layout layout = train::layout_of(config);
  std::vector<std::vector<train::MemoryRow>> out(static_cast<std::size_t>(layout.world_size()));
  control::LocalStore store;
  std::vector<std::thread> threads;
  for (int number = 0; number < layout.world_size(); ++number)
    threads.emplace_back([&, number] {
      const train::Rank rank(config, layout, number, store, null_log());
      out[static_cast<std::size_t>(number)] = rank.memory();
    });
  for (std::thread& thread : threads) thread.join();
  return out;
}

TEST(MemoryRows, PinnedMemoryIsOfTheDeviceOnTheHostOnly) {
  const std::vector<executor::RankMemory::Row> rows = {
      {"weights", 8}, {"batches", 10}, {"batches", 6, MemoryKind::pinned}, {"scratch", 1}};
  const auto row = [](const char* what, std::size_t bytes, bool is_on_host) {
    return AllOf(Field(&train::MemoryRow::what, what), Field(&train::MemoryRow::bytes, bytes),
                 Field(&train::MemoryRow::is_on_host, is_on_host));
  };
  EXPECT_THAT(train::memory_rows(rows, DeviceKind::host),
              ElementsAre(row("weights", 8, false), row("batches", 16, false), row("scratch", 1, false)));
  EXPECT_THAT(train::memory_rows(rows, DeviceKind::cuda),
              ElementsAre(row("weights", 8, false), row("batches", 10, false), row("batches", 6, true),
                          row("scratch", 1, false)));
  EXPECT_THAT(train::memory_rows_of("text", rows, DeviceKind::host), ElementsAre(row("text", 25, false)));
  EXPECT_THAT(train::memory_rows_of("text", rows, DeviceKind::cuda),
              ElementsAre(row("text", 19, false), row("text", 6, true)));
}

TEST_F(PreflightTest, ReportsLayersParametersAndTheMemoryThatTheRankTakes) {
  const config::RunConfig config = run_.config();
  const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
  EXPECT_TRUE(checked.refusals.empty());
  ASSERT_EQ(checked.plans.size(), 1u);
  EXPECT_THAT(checked.plans[0].ranks, ElementsAre(0));
  EXPECT_THAT(checked.plans[0].layers, ElementsAre("embedding", "block 0", "block 1", "head"));
  const std::int64_t block = 12 * 8 * 8 + 13 * 8; // weights, and biases with norms
  EXPECT_EQ(checked.parameters, 257 * 8 + 6 * 8 + 2 * block + 2 * 8);

  test::TinyRank rank(config);
  const std::vector<train::MemoryRow> real = rank->memory();
  expect_same_memory(checked.plans[0].memory, real);
}

TEST_F(PreflightTest, PlansEachRankAsItWillBe) {
  run_.keys["parallel.pipeline"] = "2";
  run_.keys["parallel.data"] = "2";
  run_.keys["parallel.tensor"] = "2"; // 257 tokens: 129 rows per rank, one of them padding
  const config::RunConfig config = run_.config();
  const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
  ASSERT_TRUE(checked.refusals.empty());
  ASSERT_EQ(checked.plans.size(), 4u); // data ranks are equal
  EXPECT_THAT(checked.plans[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(checked.plans[1].ranks, ElementsAre(1, 3));
  EXPECT_THAT(checked.plans[2].ranks, ElementsAre(4, 6));
  EXPECT_EQ(checked.plans[1].tensor, 1);
  EXPECT_EQ(checked.plans[2].pipeline, 1);
  EXPECT_THAT(checked.plans[1].layers, ElementsAre("embedding", "block 0"));
  EXPECT_THAT(checked.plans[2].layers, ElementsAre("block 1", "head"));

  const std::vector<std::vector<train::MemoryRow>> real = memory_of_ranks(config);
  for (const train::RankPlan& plan : checked.plans)
    for (const int number : plan.ranks) expect_same_memory(plan.memory, real.at(static_cast<std::size_t>(number)));
}

TEST_F(PreflightTest, PlansTheMemoryOfATextSample) {
  run_.keys["parallel.pipeline"] = run_.keys["parallel.tensor"] = "2";
  run_.keys["eval.every"] = run_.keys["eval.batches"] = "1";
  run_.keys["data.validation"] = "\"text\"";
  run_.keys["eval.sample"] = "\"ab\"";
  for (const bool divided : {false, true}) {
    run_.keys["optimizer.shard"] = divided ? "\"parameters\"" : "\"none\"";
    if (divided) {
      run_.keys["parallel.data"] = run_.keys["parallel.chunks"] = "2";
      run_.keys["model.layers"] = "4";
      run_.keys["schedule.plugin"] = "\"sched-breadth-first\"";
    }
    const config::RunConfig config = run_.config();
    const train::Preflight checked = train::preflight(config, train::choose_placement(config), null_log());
    ASSERT_TRUE(checked.refusals.empty());
    const std::vector<std::vector<train::MemoryRow>> real = memory_of_ranks(config);
    for (const train::RankPlan& plan : checked.plans)
      for (const int number : plan.ranks) {
        EXPECT_THAT(plan.memory, Contains(Field(&train::MemoryRow::what, "text of eval.sample")));
        expect_same_memory(plan.memory, real.at(static_cast<std::size_t>(number)));
      }
  }
}

/// With whole and split backwards, on every rank.
TEST_F(PreflightTest, ReportsThePartsOfTheActivations) {
  run_.keys["parallel.pipeline"] = "2";
  const auto plans = [this] {
    const config::RunConfig config = run_.config();
    return train::preflight(config, train::choose_placement(config), null_log()).plans;
  };
  for (const char* scheduler : {"\"sched-gpipe\"", "\"sched-zb-h1\""}) {
    run_.keys["schedule.plugin"] = scheduler;
    for (const train::RankPlan& plan : plans()) {
      std::size_t together = 0;
      for (const executor::ActivationPart& part : plan.activations) together += part.total();
      const auto row = std::ranges::find(plan.memory, "activations", &train::MemoryRow::what);
      ASSERT_NE(row, plan.memory.end());
      EXPECT_EQ(together, row->bytes) << scheduler << ", pipeline rank " << plan.pipeline;
    }
  }
  run_.keys["model.layers"] = "4";
  run_.keys["schedule.plugin"] = "\"sched-gpipe\"";
  const std::vector<train::RankPlan> gpipe = plans();
  const auto block = std::ranges::find(gpipe.at(0).activations, "block", &executor::ActivationPart::what);
  ASSERT_NE(block, gpipe[0].activations.end());
  EXPECT_EQ(block->layers, 2);
  EXPECT_EQ(block->microbatches, 4); // GPipe keeps all of them
}

TEST_F(PreflightTest, ReportsTheCostOfUnevenStages) {
  run_.keys["parallel.pipeline"] = "2";
  const config::RunConfig config = run_.config();
  const train::Balance balance = train::preflight(config, train::choose_placement(config), null_log()).balance;
  ASSERT_EQ(balance.stages.size(), 2u);
  EXPECT_EQ(balance.stages[0].layers, 2); // embedding, block
  EXPECT_EQ(balance.stages[1].pipeline, 1);
  ASSERT_TRUE(balance.step.has_value());
  // GPipe with two stages, of which the second is slower: a forward of the first, all passes of the second, a backward
  // of the first.
  const auto backward = [](const Cost& of) { return of.backward_input + of.backward_weight; };
  const Cost &first = balance.stages[0].flops, &second = balance.stages[1].flops;
  const double all = balance.stages[0].all_flops() + balance.stages[1].all_flops();
  const double own = first.forward + 4 * second.forward + 4 * backward(second) + backward(first);
  const double even = (4 + 1) * all / 2;
  EXPECT_GT(own, even);
  EXPECT_NEAR(balance.step->longer, own / even - 1, 1e-9);
  EXPECT_NEAR(balance.step->bubble, 1 - 4 * all / 2 / own, 1e-9);
  EXPECT_NEAR(balance.step->even_bubble, 1.0 / 5, 1e-9);

  run_.keys["parallel.pipeline"] = "1";
  const config::RunConfig alone = run_.config();
  EXPECT_FALSE(train::preflight(alone, train::choose_placement(alone), null_log()).balance.step.has_value());
}

/// R repeats the block of the first stage while the second computes. The second ends with the head, and has no R.
TEST_F(PreflightTest, CountsRecomputationBeforeTheGradientArrives) {
  run_.keys["parallel.pipeline"] = "2";
  const auto balance = [this] {
    const config::RunConfig config = run_.config();
    return train::preflight(config, train::choose_placement(config), null_log()).balance;
  };
  const train::Balance none = balance();
  run_.keys["memory.recompute"] = "\"full\"";
  const train::Balance full = balance();
  ASSERT_EQ(full.stages.size(), 2u);
  const auto repeated = [&](std::size_t stage) {
    return full.stages[stage].flops.backward_input - none.stages[stage].flops.backward_input;
  };
  EXPECT_EQ(none.stages[0].early_flops, 0);
  EXPECT_GT(repeated(0), 0);
  EXPECT_EQ(full.stages[0].early_flops, repeated(0));
  EXPECT_EQ(full.stages[1].early_flops, 0);
  ASSERT_TRUE(full.step.has_value());
  const auto backward = [](const Cost& of) { return of.backward_input + of.backward_weight; };
  const Cost &first = full.stages[0].flops, &second = full.stages[1].flops;
  const double all = full.stages[0].all_flops() + full.stages[1].all_flops();
  const double own = first.forward + 4 * second.forward + 4 * backward(second) + backward(first) - repeated(0);
  const double even = (4 + 1) * all / 2 - repeated(0) / 2;
  EXPECT_NEAR(full.step->longer, own / even - 1, 1e-9);
  EXPECT_NEAR(full.step->bubble, 1 - 4 * all / 2 / own, 1e-9);
  EXPECT_NEAR(full.step->even_bubble, 1 - 4 * all / 2 / even, 1e-9);
}

// Tied parameters of two pipeline ranks count once, as do the parts of tensor ranks and the replicas of data ranks.
TEST_F(PreflightTest, CountsTheParametersOfTheModelNotOfItsRanks) {
  const auto parameters = [this] {
    const config::RunConfig config = run_.config();
    return train::preflight(config, train::choose_placement(config), null_log()).parameters;
  };
  const std::int64_t one_rank = parameters();
  run_.keys["parallel.data"] = "2";
  EXPECT_EQ(parameters(), one_rank);
  run_.keys["parallel.tensor"] = "2";
  EXPECT_EQ(parameters(), one_rank);
  run_.keys["parallel.pipeline"] = "2";
  EXPECT_EQ(parameters(), one_rank);
}

} // namespace
} // namespace triax
