// SPDX-License-Identifier: Apache-2.0
// memory.recompute = "optimal": the bits of "none" within every budget, the planned memory, no more of it than "full",
// and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cost/integer_program.hpp"
#include "train/optimal_recompute_fixture.hpp"
#include "train/preflight.hpp"
#include "train/stage_recomputation.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::most_activations;
using test::OptimalRecompute;
using test::plan_within;
using test::TinyRun;
using testing::HasSubstr;

/// With dropout, whole and split backwards.
TEST_F(OptimalRecompute, ChangesNoBit) {
  for (const char* schedule : {"sched-gpipe", "sched-zb-h1"})
    for (const char* precision : {"fp32", "bf16", "fp16"}) {
      SCOPED_TRACE(text("{} {}", schedule, precision));
      TinyRun run;
      run.keys["schedule.plugin"] = text("\"{}\"", schedule);
      run.keys["kernels.plugin"] = "\"kernels-cpu\"";
      run.keys["kernels.threads"] = "1"; // their scratch depends on it
      run.keys["train.precision"] = text("\"{}\"", precision);
      run.keys["model.dropout"] = "0.1";
      expect_bits_of_none(run);
      expect_planned_memory(run);
    }
}

/// Steps with collectives in the input gradient, of stages with different choices.
TEST_F(OptimalRecompute, OfSeveralRanksChangesNoBit) {
  for (const char* schedule : {"sched-1f1b", "sched-zb-h1", "sched-zb-v", "sched-interleaved"})
    for (const bool sequence : {false, true}) {
      SCOPED_TRACE(text("{} {}", schedule, sequence));
      const std::string name = schedule;
      const bool chunks = name == "sched-zb-v" || name == "sched-interleaved";
      TinyRun run;
      run.keys["model.layers"] = "6";
      run.keys["parallel.tensor"] = "2";
      run.keys["parallel.pipeline"] = "2";
      run.keys["parallel.chunks"] = chunks ? "2" : "1";
      run.keys["parallel.sequence"] = text("{}", sequence);
      run.keys["schedule.plugin"] = text("\"{}\"", schedule);
      run.keys["kernels.plugin"] = "\"kernels-cpu\"";
      expect_bits_of_none(run, 3);
      expect_planned_memory(run);
    }
}

TEST_F(OptimalRecompute, OfSomeStagesChangesNoBit) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  run.keys["parallel.pipeline"] = "2";
  run.keys["schedule.plugin"] = "\"sched-1f1b\"";
  for (const char* recompute : {R"(["optimal", "full"])", R"(["cheap", "optimal"])"}) {
    SCOPED_TRACE(recompute);
    set_budget(run, 1 << 30, recompute);
    expect_planned_memory(run);
    unset_budget(run);
    const std::vector<test::RankTrace> none = test::train_ranks(run, 2);
    set_budget(run, least_budget(run, recompute), recompute);
    expect_planned_memory(run);
    const std::vector<test::RankTrace> mixed = test::train_ranks(run, 2);
    for (std::size_t rank = 0; rank < mixed.size(); ++rank) EXPECT_EQ(mixed[rank].weights, none[rank].weights) << rank;
  }
}

TEST_F(OptimalRecompute, OfShardedStateChangesNoBit) {
  for (const char* shard : {"states", "parameters"}) {
    SCOPED_TRACE(shard);
    TinyRun run;
    run.keys["model.layers"] = "4";
    run.keys["parallel.data"] = "2";
    run.keys["parallel.pipeline"] = "2";
    run.keys["schedule.plugin"] = "\"sched-1f1b\"";
    run.keys["optimizer.shard"] = text("\"{}\"", shard);
    expect_bits_of_none(run, 3);
    expect_planned_memory(run);
  }
}

TEST_F(OptimalRecompute, OfLlamaChangesNoBit) {
  TinyRun run;
  run.use_llama(2);
  run.keys["model.layers"] = "6";
  run.keys["parallel.pipeline"] = "2";
  run.keys["schedule.plugin"] = "\"sched-zb-h1\"";
  expect_bits_of_none(run, 3);
  expect_planned_memory(run);
}

/// The largest budget needs no recomputation, and the least needs at most the memory of "full".
TEST_F(OptimalRecompute, NeedsNoMoreThanFull) {
  for (const char* schedule : {"sched-gpipe", "sched-1f1b", "sched-zb-h1"}) {
    SCOPED_TRACE(schedule);
    TinyRun run;
    run.keys["model.layers"] = "8";
    run.keys["parallel.pipeline"] = "2";
    run.keys["batch.global"] = "8";
    run.keys["schedule.plugin"] = text("\"{}\"", schedule);
    const std::uint64_t none = most_activations(run), least = least_budget(run);
    unset_budget(run);
    run.keys["memory.recompute"] = "\"full\"";
    EXPECT_LE(least, most_activations(run));
    set_budget(run, none);
    EXPECT_EQ(most_activations(run), none);
    for (const train::StageRecomputation& of : plan_within(run).recomputation)
      EXPECT_THAT(to_text(of), HasSubstr("4 blocks keep all"));
    set_budget(run, least - 1);
    EXPECT_EQ(plan_within(run).refusals.size(), 1u);
    set_budget(run, least);
    EXPECT_EQ(most_activations(run), least);
  }
}

TEST_F(OptimalRecompute, IsRefusedByAModelWithoutSteps) {
  TinyRun run;
  test::use_divided_model(run);
  set_budget(run, 1 << 30);
  const train::Preflight plan = plan_within(run);
  ASSERT_EQ(plan.refusals.size(), 1u);
  EXPECT_THAT(plan.refusals.front().message, HasSubstr("of model-divided cannot run parts of its forward again"));
  EXPECT_EQ(plan.refusals.front().keys, (std::vector<std::string>{"memory.recompute", "model.plugin"}));
}

/// A build without the solver says what to install.
TEST(OptimalRecomputeKeys, AreRefusedWithAReason) {
  TinyRun run;
  run.keys["memory.recompute"] = "\"optimal\"";
  const auto refusal = [&run] { return run.load().refusals.at(0).text; };
  EXPECT_THAT(refusal(), HasSubstr("memory.recompute = \"optimal\" needs memory.activation_budget"));
  for (const char* size : {"2", "2 gib", "-1GiB", "0 B"}) {
    run.keys["memory.activation_budget"] = text("\"{}\"", size);
    EXPECT_THAT(refusal(), HasSubstr(text("memory.activation_budget = \"{}\" is not a size", size)));
  }
  for (const char* size : {"1000.1 PB", "1e30 kB"}) {
    run.keys["memory.activation_budget"] = text("\"{}\"", size);
    EXPECT_THAT(refusal(), HasSubstr(text("memory.activation_budget = \"{}\" is more than 1000 PB", size)));
  }
  run.keys["memory.activation_budget"] = "\"1000 PB\"";
  EXPECT_EQ(run.config().memory.activation_budget, std::uint64_t{1'000'000'000'000'000'000});
  run.keys["memory.activation_budget"] = "\"2 GiB\"";
  EXPECT_EQ(run.config().memory.activation_budget, std::uint64_t{2} << 30);
  if (cost::integer_solver_error().empty()) return;
  const train::Preflight plan = plan_within(run);
  ASSERT_EQ(plan.refusals.size(), 1u);
  EXPECT_THAT(plan.refusals.front().hint, HasSubstr("coinor-libcbc-dev"));
}

} // namespace
} // namespace triax
