// SPDX-License-Identifier: Apache-2.0
// optimizer.shard: data ranks divide the optimizer's state, gradients and weights. The bits of a run do not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/preflight.hpp"
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

} // namespace
} // namespace triax
