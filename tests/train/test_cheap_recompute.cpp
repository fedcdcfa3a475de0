// SPDX-License-Identifier: Apache-2.0
// memory.recompute = "cheap": the bits of "none", the memory of the formula, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "train/preflight.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;

train::Preflight planned(const TinyRun& run) {
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  train::Preflight out = train::preflight(config, train::choose_placement(config), null_log());
  for (const Refusal& refusal : out.refusals) ADD_FAILURE() << refusal.message;
  return out;
}

/// What a block keeps for a microbatch on the first rank.
std::size_t kept_by_block(const TinyRun& run) {
  const train::Preflight plan = planned(run);
  for (const executor::ActivationPart& part : plan.plans.front().activations)
    if (part.what == "block") return part.bytes;
  return 0;
}

void expect_planned_memory_is_allocated(const TinyRun& run) {
  const config::RunConfig config = run.config();
  const train::Preflight plan = planned(run);
  std::vector<std::vector<train::MemoryRow>> memory(plan.plans.size());
  test::run_ranks(config, train::layout_of(config),
                  [&memory](train::Rank& rank, int index) { memory[static_cast<std::size_t>(index)] = rank.memory(); });
  for (const train::RankPlan& of : plan.plans) {
    const std::vector<train::MemoryRow>& used = memory[static_cast<std::size_t>(of.ranks.front())];
    ASSERT_EQ(used.size(), of.memory.size());
    for (std::size_t row = 0; row < used.size(); ++row)
      EXPECT_EQ(used[row].bytes, of.memory[row].bytes) << used[row].what << " of rank " << of.ranks.front();
  }
}

void expect_bits_of_none(TinyRun& run, const std::string& recompute) {
  run.keys["memory.recompute"] = "\"none\"";
  const std::vector<test::RankTrace> none = test::train_ranks(run, 3);
  run.keys["memory.recompute"] = recompute;
  const std::vector<test::RankTrace> cheap = test::train_ranks(run, 3);
  ASSERT_EQ(cheap.size(), none.size());
  for (std::size_t rank = 0; rank < cheap.size(); ++rank) {
    EXPECT_EQ(cheap[rank].trace, none[rank].trace) << rank;
    EXPECT_EQ(cheap[rank].weights, none[rank].weights) << rank;
    EXPECT_EQ(cheap[rank].held_out, none[rank].held_out) << rank;
  }
}

/// With dropout, whole and split backwards.
TEST(CheapRecompute, ChangesNoBit) {
  for (const char* schedule : {"sched-gpipe", "sched-zb-h1"})
    for (const char* kernels : {"kernels-reference", "kernels-cpu"})
      for (const char* precision : {"fp32", "bf16", "fp16"}) {
        if (std::string(kernels) == "kernels-reference" && std::string(precision) != "fp32") continue;
        SCOPED_TRACE(text("{} {} {}", schedule, kernels, precision));
        TinyRun run;
        run.keys["schedule.plugin"] = text("\"{}\"", schedule);
        run.keys["kernels.plugin"] = text("\"{}\"", kernels);
        run.keys["train.precision"] = text("\"{}\"", precision);
        run.keys["model.dropout"] = "0.1";
        expect_bits_of_none(run, "\"cheap\"");
      }
}

/// Stages of five and four blocks on two tensor ranks, with the planned memory.
TEST(CheapRecompute, OfSeveralRanksChangesNoBit) {
  for (const char* schedule : {"sched-1f1b", "sched-zb-h1", "sched-zb-v", "sched-interleaved"})
    for (const bool sequence : {false, true}) {
      SCOPED_TRACE(text("{} {}", schedule, sequence));
      const std::string name = schedule;
      const bool chunks = name == "sched-zb-v" || name == "sched-interleaved";
      TinyRun run;
      run.keys["model.layers"] = "9";
      run.keys["parallel.tensor"] = "2";
      run.keys["parallel.pipeline"] = "2";
      run.keys["parallel.chunks"] = chunks ? "2" : "1";
      run.keys["parallel.sequence"] = text("{}", sequence);
      run.keys["schedule.plugin"] = text("\"{}\"", schedule);
      run.keys["kernels.plugin"] = "\"kernels-cpu\"";
      if (name == "sched-zb-h1") run.keys["train.precision"] = "\"bf16\"";
      for (const char* recompute :
           {R"("cheap")", chunks ? R"(["cheap", "full", "none", "cheap"])" : R"(["full", "cheap"])"}) {
        SCOPED_TRACE(recompute);
        expect_bits_of_none(run, recompute);
        expect_planned_memory_is_allocated(run);
      }
    }
}

/// 256 bytes for each column of 64 positions in fp32, so that no tensor has padding.
struct WholeColumns : TinyRun {
  WholeColumns() {
    keys["model.hidden"] = "64";
    keys["model.heads"] = "4";
    keys["model.sequence"] = "64";
  }
};
constexpr std::size_t kColumn = 64 * 4; // bytes

/// Korthikanti et al. (arXiv 2205.05198, section 4.1) count 34 h bytes a token in 16 bits, of which 2 h are masks of
/// dropout, which Triax computes again. The other 32 h are 16 h elements.
TEST(CheapRecompute, KeepsTheElementsOfTheFormula) {
  constexpr std::size_t kHidden = 64, kHeads = 4, kStatistics = 4; // mean and rstd of two norms
  for (const std::size_t tensor : {1, 2, 4})
    for (const bool sequence : {false, true}) {
      if (tensor == 1 && sequence) continue;
      SCOPED_TRACE(text("tensor {}, sequence {}", tensor, sequence));
      WholeColumns run;
      run.keys["parallel.tensor"] = text("{}", tensor);
      run.keys["parallel.sequence"] = text("{}", sequence);
      run.keys["batch.micro"] = text("{}", tensor); // statistics of 1/t of the positions have no padding
      const std::size_t columns = kColumn * tensor, of_rows = sequence ? columns / tensor : columns;
      const std::size_t statistics = of_rows * kStatistics + columns * kHeads / tensor;
      EXPECT_EQ(kept_by_block(run), of_rows * 4 * kHidden + columns * 12 * kHidden / tensor + statistics);
      run.keys["memory.recompute"] = "\"cheap\"";
      EXPECT_EQ(kept_by_block(run), of_rows * 2 * kHidden + columns * 8 * kHidden / tensor + statistics);
    }
}

/// Of model-llama two norms and silu(gate) * up, and queries and keys where their heads have norms.
TEST(CheapRecompute, OfLlamaKeepsNoNormedHeads) {
  constexpr std::size_t kHidden = 64, kHeads = 4, kKeyHeads = 2, kHeadSize = 4, kInner = 12;
  for (const bool norms : {false, true}) {
    WholeColumns run;
    run.use_llama(kKeyHeads);
    run.keys["model.qk_norm"] = text("{}", norms);
    const std::size_t none = kept_by_block(run);
    run.keys["memory.recompute"] = "\"cheap\"";
    EXPECT_EQ(none - kept_by_block(run),
              kColumn * (2 * kHidden + kInner + (norms ? (kHeads + kKeyHeads) * kHeadSize : 0)));
    run.keys["parallel.pipeline"] = "2";
    run.keys["schedule.plugin"] = "\"sched-zb-h1\"";
    expect_bits_of_none(run, "\"cheap\"");
  }
}

/// From I to W, a rank keeps the recomputed tensors of fewer microbatches than from F to W.
TEST(CheapRecompute, NeedsLessMemoryThanNoneAndMoreThanFull) {
  for (const char* schedule : {"sched-gpipe", "sched-1f1b", "sched-zb-h1"}) {
    WholeColumns run;
    run.keys["model.layers"] = "8";
    run.keys["parallel.pipeline"] = "2";
    run.keys["batch.global"] = "8";
    run.keys["schedule.plugin"] = text("\"{}\"", schedule);
    std::vector<std::size_t> bytes;
    for (const char* recompute : {"none", "cheap", "full"}) {
      run.keys["memory.recompute"] = text("\"{}\"", recompute);
      bytes.push_back(planned(run).plans.front().bytes());
    }
    EXPECT_GT(bytes[0], bytes[1]) << schedule;
    EXPECT_GT(bytes[1], bytes[2]) << schedule;
  }
}

/// FLOPs are those of matrix products.
TEST(CheapRecompute, RepeatsNoFlops) {
  TinyRun run;
  const auto flops = [&run](const char* recompute) {
    run.keys["memory.recompute"] = text("\"{}\"", recompute);
    return planned(run).balance.stages.front().flops;
  };
  const Cost none = flops("none"), cheap = flops("cheap"), full = flops("full");
  EXPECT_EQ(cheap.forward, none.forward);
  EXPECT_EQ(cheap.backward_input, none.backward_input);
  EXPECT_EQ(cheap.backward_weight, none.backward_weight);
  EXPECT_GT(full.backward_input, none.backward_input);
}

TEST(CheapRecompute, IsRefusedByAModelWithoutIt) {
  TinyRun run;
  test::use_divided_model(run);
  run.keys["memory.recompute"] = "\"cheap\"";
  config::RunConfig config = run.config();
  config.data.training.paths.clear();
  const train::Preflight plan = train::preflight(config, train::choose_placement(config), null_log());
  ASSERT_EQ(plan.refusals.size(), 1u);
  EXPECT_NE(plan.refusals.front().message.find("of model-divided cannot recompute a part of what it keeps"),
            std::string::npos)
      << plan.refusals.front().message;
  EXPECT_EQ(plan.refusals.front().keys, (std::vector<std::string>{"memory.recompute", "model.plugin"}));
}

} // namespace
} // namespace triax
