// SPDX-License-Identifier: Apache-2.0
// The steps that memory.recompute = "optimal" chooses: no more time than "full" and "cheap" in as much memory, one
// choice on all ranks, and its report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control/job_local_store.hpp"
#include "cost/default_cluster.hpp"
#include "cost/layer_cost.hpp"
#include "train/optimal_recompute_fixture.hpp"
#include "train/preflight.hpp"
#include "train/step_choices.hpp"

namespace triax {
namespace {

using test::most_activations;
using test::OptimalRecompute;
using test::plan_within;
using test::TinyRun;
using testing::HasSubstr;

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
  EXPECT_GT(of.forward_fraction, 0);
  EXPECT_THAT(to_text(of), testing::AllOf(HasSubstr("stage 0: "), HasSubstr("recompute"),
                                          HasSubstr("of its blocks' forward by the cost model")));
}

} // namespace
} // namespace triax
