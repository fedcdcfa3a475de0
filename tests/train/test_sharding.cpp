// SPDX-License-Identifier: Apache-2.0
// optimizer.shard: data ranks divide the optimizer's state, gradients and weights. The bits of a run do not change, its
// memory does as the formulas say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <mutex>

#include "train/preflight_run.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;

/// What a rank has of a parameter, as bytes.
struct HeldParameter {
  std::vector<std::byte> working, master, gradient;
  std::size_t first = 0, gradient_first = 0, working_first = 0; // of these, in the whole parameter, in bytes
};

struct HeldRank {
  std::vector<double> losses, norms;
  std::vector<bool> skipped;
  double held_out = 0;
  std::map<std::string, HeldParameter> parameters;
};

std::vector<HeldRank> ranks_of(const TinyRun& run, int steps) {
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  std::vector<HeldRank> out(static_cast<std::size_t>(layout.world_size()));
  test::run_ranks(config, layout, [&](train::Rank& rank, int index) {
    HeldRank& of = out[static_cast<std::size_t>(index)];
    for (int step = 0; step < steps; ++step) {
      const train::StepResult result = rank.step();
      of.losses.push_back(result.loss);
      of.norms.push_back(result.grad_norm);
      of.skipped.push_back(result.skipped);
    }
    of.held_out = rank.evaluate().loss;
    for (const train::RankParameter& parameter : rank.parameters()) {
      HeldParameter& held = of.parameters[parameter.name];
      test::append(held.working, parameter.working);
      test::append(held.master, parameter.master);
      test::append(held.gradient, parameter.gradient);
      const std::size_t width = bytes_of(parameter.master.dtype());
      held.first = static_cast<std::size_t>(parameter.first) * width;
      held.gradient_first = static_cast<std::size_t>(parameter.gradient_first) * width;
      held.working_first = static_cast<std::size_t>(parameter.working_first) * bytes_of(parameter.working.dtype());
    }
  });
  return out;
}

/// A skipped step has a norm that is not a number.
std::vector<std::uint64_t> bits_of(const std::vector<double>& values) {
  std::vector<std::uint64_t> out;
  for (const double value : values) out.push_back(std::bit_cast<std::uint64_t>(value));
  return out;
}

bool is_part(const std::vector<std::byte>& part, std::size_t first, const std::vector<std::byte>& whole) {
  return first + part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first));
}

/// `one` may hold parts of the weights and gradients of `all`.
void expect_same(const std::vector<HeldRank>& one, const std::vector<HeldRank>& all) {
  ASSERT_EQ(one.size(), all.size());
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    SCOPED_TRACE(text("rank {}", rank));
    EXPECT_EQ(bits_of(one[rank].losses), bits_of(all[rank].losses));
    EXPECT_EQ(bits_of(one[rank].norms), bits_of(all[rank].norms));
    EXPECT_EQ(one[rank].skipped, all[rank].skipped);
    EXPECT_EQ(one[rank].held_out, all[rank].held_out);
    ASSERT_EQ(one[rank].parameters.size(), all[rank].parameters.size());
    for (const auto& [name, held] : one[rank].parameters) {
      const HeldParameter& whole = all[rank].parameters.at(name);
      EXPECT_TRUE(is_part(held.working, held.working_first, whole.working)) << name;
      EXPECT_TRUE(is_part(held.master, held.first, whole.master)) << name;
      EXPECT_TRUE(is_part(held.gradient, held.gradient_first, whole.gradient)) << name;
    }
  }
}

constexpr const char* kShards[] = {"\"states\"", "\"gradients\"", "\"parameters\""};

struct Divided {
  const char* name;
  std::map<std::string, std::string> keys;
  bool shares_accumulators = false;
};

/// 3 does not divide the parameters; with 4 data ranks, some own no element of a small one.
const std::vector<Divided>& divided_runs() {
  static const std::vector<Divided> runs = {
      {"d2", {{"parallel.data", "2"}}},
      {"d3_bf16",
       {{"parallel.data", "3"},
        {"batch.global", "6"},
        {"train.precision", "\"bf16\""},
        {"kernels.plugin", "\"kernels-cpu\""}}},
      {"d4_sgd", {{"parallel.data", "4"}, {"optimizer.plugin", "\"optim-sgd\""}, {"optimizer.momentum", "0.9"}}},
      {"t2_d2_sequence_recompute",
       {{"parallel.data", "2"},
        {"parallel.tensor", "2"},
        {"parallel.sequence", "true"},
        {"memory.recompute", "\"full\""},
        {"train.precision", "\"bf16\""},
        {"kernels.plugin", "\"kernels-cpu\""}}},
      {"p2_d2_zero_bubble",
       {{"parallel.data", "2"}, {"parallel.pipeline", "2"}, {"schedule.plugin", "\"sched-zb-h1\""}}},
      {"v2_d2_breadth_first",
       {{"parallel.data", "2"},
        {"parallel.chunks", "2"},
        {"model.layers", "4"},
        {"schedule.plugin", "\"sched-breadth-first\""},
        {"train.precision", "\"bf16\""},
        {"kernels.plugin", "\"kernels-cpu\""}}},
      {"v8_d2_shared_accumulators",
       {{"parallel.data", "2"},
        {"parallel.chunks", "8"},
        {"model.layers", "16"},
        {"schedule.plugin", "\"sched-breadth-first\""}},
       true},
      {"p2_v2_d2_vee",
       {{"parallel.data", "2"},
        {"parallel.pipeline", "2"},
        {"parallel.chunks", "2"},
        {"model.layers", "4"},
        {"schedule.plugin", "\"sched-zb-v\""},
        {"train.precision", "\"bf16\""},
        {"kernels.plugin", "\"kernels-cpu\""}}},
      {"d3_lamb", {{"parallel.data", "3"}, {"batch.global", "6"}, {"optimizer.plugin", "\"optim-lamb\""}}},
      {"t2_d2_sequence_lamb",
       {{"parallel.data", "2"},
        {"parallel.tensor", "2"},
        {"parallel.sequence", "true"},
        {"optimizer.plugin", "\"optim-lamb\""},
        {"train.precision", "\"bf16\""},
        {"kernels.plugin", "\"kernels-cpu\""}}},
      {"d3_muon", {{"parallel.data", "3"}, {"batch.global", "6"}, {"optimizer.plugin", "\"optim-muon\""}}},
      {"t2_d2_sequence_muon",
       {{"parallel.data", "2"},
        {"parallel.tensor", "2"},
        {"parallel.sequence", "true"},
        {"optimizer.plugin", "\"optim-muon\""},
        {"train.precision", "\"bf16\""},
        {"kernels.plugin", "\"kernels-cpu\""}}},
      {"p2_v2_d2_muon",
       {{"parallel.data", "2"},
        {"parallel.pipeline", "2"},
        {"parallel.chunks", "2"},
        {"model.layers", "4"},
        {"optimizer.plugin", "\"optim-muon\""},
        {"schedule.plugin", "\"sched-interleaved\""}}},
      {"p2_v2_d2_lamb",
       {{"parallel.data", "2"},
        {"parallel.pipeline", "2"},
        {"parallel.chunks", "2"},
        {"model.layers", "4"},
        {"optimizer.plugin", "\"optim-lamb\""},
        {"schedule.plugin", "\"sched-interleaved\""}}},
  };
  return runs;
}

class SameBitsWhenDivided : public testing::TestWithParam<Divided> {};

/// With dropout and clipping.
TEST_P(SameBitsWhenDivided, OfTheStatesTheGradientsAndTheParameters) {
  TinyRun run;
  run.keys["train.clip_grad"] = "0.1";
  for (const auto& [key, value] : GetParam().keys) run.keys[key] = value;
  const std::vector<HeldRank> whole = ranks_of(run, 3);
  for (const char* shard : kShards) {
    SCOPED_TRACE(shard);
    run.keys["optimizer.shard"] = shard;
    expect_same(ranks_of(run, 3), whole);
  }
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  EXPECT_EQ(train::preflight(config, train::choose_placement(config), null_log()).shares_accumulators,
            GetParam().shares_accumulators);
}

INSTANTIATE_TEST_SUITE_P(Of, SameBitsWhenDivided, testing::ValuesIn(divided_runs()),
                         [](const auto& of) { return of.param.name; });

/// optim-noise draws a number for each element. A rank that updates a part draws those of its elements.
TEST(Sharding, RandomNumbersOfAnOptimizerAreThoseOfTheElements) {
  TinyRun run;
  run.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run.keys["optimizer.plugin"] = "\"optim-noise\"";
  run.keys["optimizer.weight_decay"] = "0";
  run.keys["parallel.data"] = "3";
  run.keys["batch.global"] = "6";
  const std::vector<HeldRank> whole = ranks_of(run, 2);
  for (const char* shard : kShards) {
    SCOPED_TRACE(shard);
    run.keys["optimizer.shard"] = shard;
    expect_same(ranks_of(run, 2), whole);
  }
}

/// The first steps overflow.
TEST(Sharding, SkipsTheStepsThatARunWithoutItSkips) {
  TinyRun run;
  run.keys["parallel.data"] = "2";
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"fp16\"";
  run.keys["loss_scale.initial"] = "8388608";
  run.keys["loss_scale.hysteresis"] = "1";
  const std::vector<HeldRank> whole = ranks_of(run, 5);
  EXPECT_TRUE(whole.front().skipped.front());
  EXPECT_FALSE(whole.front().skipped.back());
  for (const char* shard : kShards) {
    run.keys["optimizer.shard"] = shard;
    expect_same(ranks_of(run, 5), whole);
  }
}

/// Without prefetch, with all stages in memory, and between.
TEST(Sharding, OfParametersHasTheSameBitsAtEveryDistance) {
  TinyRun run;
  run.keys["parallel.data"] = "2";
  run.keys["parallel.pipeline"] = "2";
  run.keys["parallel.chunks"] = "3";
  run.keys["model.layers"] = "6";
  run.keys["schedule.plugin"] = "\"sched-interleaved\"";
  const std::vector<HeldRank> whole = ranks_of(run, 2);
  run.keys["optimizer.shard"] = "\"parameters\"";
  for (const char* prefetch : {"0", "1", "7"}) {
    SCOPED_TRACE(prefetch);
    run.keys["optimizer.prefetch"] = prefetch;
    expect_same(ranks_of(run, 2), whole);
  }
}

/// Ranks repeat the step to find where a value is not finite, and gather the weights for it.
TEST(Sharding, OfParametersFindsWhereAValueIsNotFinite) {
  TinyRun run;
  run.keys["parallel.data"] = "2";
  run.keys["optimizer.lr"] = "1e30";
  run.keys["train.steps"] = "8";
  const auto error_of = [&run] {
    std::string out;
    const config::RunConfig config = run.config();
    test::run_ranks(config, train::layout_of(config), [&](train::Rank& rank, int index) {
      try {
        for (int step = 0; step < 8; ++step) rank.step();
      } catch (const Error& error) {
        if (index == 0) out = error.what();
      }
    });
    return out;
  };
  const std::string whole = error_of();
  EXPECT_NE(whole, "");
  run.keys["optimizer.shard"] = "\"parameters\"";
  EXPECT_EQ(error_of(), whole);
}

TEST(Sharding, OfOneDataRankChangesNothing) {
  TinyRun run;
  run.keys["optimizer.shard"] = "\"states\"";
  const config::RunConfig config = run.config();
  EXPECT_EQ(train::sharding(config), schedule::Sharding::none);
}

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
