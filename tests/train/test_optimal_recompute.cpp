// SPDX-License-Identifier: Apache-2.0
// memory.recompute = "optimal": the bits of "none" within every budget, the planned memory, no more time than "full"
// and "cheap" in as much memory, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control/job_local_store.hpp"
#include "cost/default_cluster.hpp"
#include "cost/integer_program.hpp"
#include "cost/layer_cost.hpp"
#include "train/preflight.hpp"
#include "train/step_choices.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;
using testing::HasSubstr;

std::uint64_t activation_bytes(const train::RankPlan& plan) {
  std::uint64_t out = 0;
  for (const executor::ActivationPart& part : plan.activations) out += part.total();
  return out;
}

train::Preflight plan_within(const TinyRun& run) {
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  return train::preflight(config, train::choose_placement(config), null_log());
}

/// Of the rank that needs most.
std::uint64_t most_activations(const TinyRun& run) {
  const train::Preflight plan = plan_within(run);
  for (const Refusal& refusal : plan.refusals) ADD_FAILURE() << refusal.message;
  std::uint64_t out = 0;
  for (const train::RankPlan& of : plan.plans) out = std::max(out, activation_bytes(of));
  return out;
}

class OptimalRecompute : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string error = cost::integer_solver_error(); !error.empty()) GTEST_SKIP() << error;
  }

  static void set_budget(TinyRun& run, std::uint64_t bytes, const std::string& recompute = "\"optimal\"") {
    run.keys["memory.recompute"] = recompute;
    run.keys["memory.activation_budget"] = text("\"{} B\"", bytes);
  }
  static void unset_budget(TinyRun& run) {
    run.keys["memory.recompute"] = "\"none\"";
    run.keys.erase("memory.activation_budget");
  }

  /// The least budget that is accepted, which the refusal of one byte names. Leaves the key of one byte in the run.
  static std::uint64_t least_budget(TinyRun& run, const std::string& recompute = "\"optimal\"") {
    set_budget(run, 1, recompute);
    const train::Preflight plan = plan_within(run);
    if (plan.refusals.size() != 1) {
      ADD_FAILURE() << plan.refusals.size() << " refusals";
      return 0;
    }
    const std::string &message = plan.refusals.front().message, before = " need ";
    EXPECT_THAT(message, HasSubstr("memory.activation_budget = \"1 B\": the activations of rank "));
    EXPECT_EQ(plan.refusals.front().keys, std::vector<std::string>{"memory.activation_budget"});
    return std::stoull(message.substr(message.find(before) + before.size()));
  }

  /// From the least memory to that of "none".
  static std::vector<std::uint64_t> budgets(TinyRun& run, int count, const std::string& recompute = "\"optimal\"") {
    const std::uint64_t least = least_budget(run, recompute);
    unset_budget(run);
    const std::uint64_t most = most_activations(run);
    EXPECT_LT(least, most);
    std::vector<std::uint64_t> out;
    for (int i = 0; i < count; ++i)
      out.push_back(least + (most - least) * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(count - 1));
    return out;
  }

  /// The budget is kept, and each rank allocates what is planned.
  static void expect_planned_memory(const TinyRun& run) {
    const config::RunConfig config = run.config();
    const train::Preflight plan = plan_within(run);
    for (const Refusal& refusal : plan.refusals) ADD_FAILURE() << refusal.message;
    const Layout layout = train::layout_of(config);
    std::vector<std::vector<train::MemoryRow>> memory(static_cast<std::size_t>(layout.world_size()));
    test::run_ranks(config, layout, [&memory](train::Rank& rank, int index) {
      memory.at(static_cast<std::size_t>(index)) = rank.memory();
    });
    for (const train::RankPlan& of : plan.plans) {
      if (config.memory.recompute.of(of.pipeline) == "optimal") { // chunks have one value
        EXPECT_LE(activation_bytes(of), config.memory.activation_budget);
      }
      const std::vector<train::MemoryRow>& used = memory[static_cast<std::size_t>(of.ranks.front())];
      ASSERT_EQ(used.size(), of.memory.size());
      for (std::size_t row = 0; row < used.size(); ++row)
        EXPECT_EQ(used[row].bytes, of.memory[row].bytes) << used[row].what << " of rank " << of.ranks.front();
    }
  }

  static void expect_bits_of_none(TinyRun& run, int count = 4, const std::string& recompute = "\"optimal\"") {
    const std::vector<std::uint64_t> tried = budgets(run, count, recompute);
    unset_budget(run);
    const std::vector<test::RankTrace> none = test::train_ranks(run, 2);
    for (const std::uint64_t budget : tried) {
      SCOPED_TRACE(text("budget {}", budget));
      set_budget(run, budget, recompute);
      const std::vector<test::RankTrace> optimal = test::train_ranks(run, 2);
      ASSERT_EQ(optimal.size(), none.size());
      for (std::size_t rank = 0; rank < optimal.size(); ++rank) {
        EXPECT_EQ(optimal[rank].trace, none[rank].trace) << rank;
        EXPECT_EQ(optimal[rank].weights, none[rank].weights) << rank;
        EXPECT_EQ(optimal[rank].held_out, none[rank].held_out) << rank;
      }
    }
  }
};

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

/// What the blocks of a run recompute, by stage.
std::vector<std::vector<train::ChosenBlock>> chosen_within(const TinyRun& run) {
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  const train::RankPlugins plugins(config, layout, 0, 1, null_log());
  const Schedule schedule = train::schedule_of(config, plugins, nullptr);
  train::Programs programs;
  for (const Refusal& refusal : train::choose_steps(config, layout, plugins, schedule, programs))
    ADD_FAILURE() << refusal.message;
  return programs.chosen;
}

/// Of a block's steps that "cheap" repeats, by the costs of the choice.
double cheap_seconds(const TinyRun& run) {
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  const train::RankPlugins plugins(config, layout, 0, 1, null_log());
  const LayerContext context = train::layer_context(config, plugins.model(), layout, 0);
  const std::unique_ptr<Layer> block = plugins.model().layer(plugins.model().info().first_block, context);
  auto& offered = *find_extension<RecomputeSteps>(*block);
  const cost::Cluster cluster = cost::default_cluster(DeviceKind::host);
  const std::vector<cost::RepeatedTime> times =
      cost::LayerCost(cluster, *cost::code_named("triax")).of_steps(*block, offered, context);
  double out = 0;
  for (std::size_t step = 0; step < times.size(); ++step)
    if (const std::string& name = offered.steps()[step].name;
        name.ends_with("norm") || name == "mlp.gelu" || name == "mlp.silu")
      out += times[step].pass.all_s();
  return out;
}

/// In the memory of "full", no more than the forward of each block; in that of "cheap", no more than its steps. Times
/// are integers, in units of a 4096th of a forward.
TEST_F(OptimalRecompute, TakesNoMoreTimeThanCheapAndFull) {
  for (const bool llama : {false, true})
    for (const char* schedule : {"sched-gpipe", "sched-zb-h1"}) {
      SCOPED_TRACE(text("{} {}", llama, schedule));
      TinyRun run;
      if (llama) run.use_llama(2);
      run.keys["model.layers"] = "3";
      run.keys["schedule.plugin"] = text("\"{}\"", schedule);
      run.keys["memory.recompute"] = "\"cheap\"";
      const std::uint64_t cheap = most_activations(run);
      run.keys["memory.recompute"] = "\"full\"";
      const std::uint64_t full = most_activations(run);
      set_budget(run, full);
      double recomputed_s = 0, forward_s = 0;
      const std::vector<std::vector<train::ChosenBlock>> of_full = chosen_within(run);
      ASSERT_EQ(of_full.size(), 1u);
      for (const train::ChosenBlock& block : of_full.front()) {
        recomputed_s += block.recomputed_s;
        forward_s += block.forward_s;
      }
      EXPECT_GT(recomputed_s, 0);
      EXPECT_LE(recomputed_s, forward_s);
      const double rounding_s = 20 * forward_s / 4096;
      set_budget(run, cheap);
      double cheap_s = 0;
      const std::vector<std::vector<train::ChosenBlock>> of_cheap = chosen_within(run);
      for (const train::ChosenBlock& block : of_cheap.front()) cheap_s += block.recomputed_s;
      EXPECT_LE(cheap_s, 3 * cheap_seconds(run) + rounding_s);
      EXPECT_LE(cheap_s, recomputed_s + rounding_s);
    }
}

/// The ranks of a job find the choice that was planned.
TEST_F(OptimalRecompute, IsTheSameInEachObject) {
  TinyRun run;
  run.keys["model.layers"] = "5";
  set_budget(run, budgets(run, 3)[1]);
  const std::vector<std::vector<train::ChosenBlock>> one = chosen_within(run), other = chosen_within(run);
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t stage = 0; stage < one.size(); ++stage)
    EXPECT_TRUE(
        std::ranges::equal(one[stage], other[stage], {}, &train::ChosenBlock::steps, &train::ChosenBlock::steps));
}

/// Counts what is written.
class CountedStore final : public Store {
 public:
  void set(std::string_view key, std::string_view value) override {
    ++sets_;
    store_.set(key, value);
  }
  std::string get(std::string_view key, Deadline deadline) override { return store_.get(key, deadline); }
  std::int64_t add(std::string_view key, std::int64_t amount) override { return store_.add(key, amount); }
  int sets() const { return sets_; }

 private:
  control::LocalStore store_;
  std::atomic<int> sets_ = 0;
};

TEST_F(OptimalRecompute, OfEachStageIsChosenByOneRank) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  run.keys["parallel.pipeline"] = "2";
  run.keys["parallel.tensor"] = "2";
  run.keys["parallel.data"] = "2";
  run.keys["schedule.plugin"] = "\"sched-1f1b\"";
  set_budget(run, least_budget(run));
  const std::vector<std::vector<train::ChosenBlock>> all = chosen_within(run);
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  CountedStore store;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < layout.world_size(); ++rank)
    ranks.emplace_back([&, rank] {
      const train::RankPlugins plugins(config, layout, rank, 1, null_log());
      const train::Programs programs = train::chosen_programs(
          config, layout, rank, plugins, train::schedule_of(config, plugins, nullptr), store, deadline_in(300));
      ASSERT_EQ(programs.chosen.size(), all.size());
      for (std::size_t stage = 0; stage < all.size(); ++stage)
        EXPECT_TRUE(std::ranges::equal(programs.chosen[stage], all[stage], {}, &train::ChosenBlock::steps,
                                       &train::ChosenBlock::steps))
            << rank;
    });
  ranks.clear();
  EXPECT_EQ(store.sets(), 2);
}

TEST_F(OptimalRecompute, ReportsTheChoice) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  set_budget(run, budgets(run, 3)[1]);
  const train::Preflight plan = plan_within(run);
  ASSERT_EQ(plan.recomputation.size(), 1u);
  const train::StageRecomputation& of = plan.recomputation.front();
  int blocks = 0;
  for (const train::StageRecomputation::Blocks& row : of.blocks) blocks += row.count;
  EXPECT_EQ(blocks, 4);
  EXPECT_GT(of.of_forward, 0);
  EXPECT_THAT(to_text(of), testing::AllOf(HasSubstr("stage 0: "), HasSubstr("recompute"),
                                          HasSubstr("of its blocks' forward by the cost model")));
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
