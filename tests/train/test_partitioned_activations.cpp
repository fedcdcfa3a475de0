// SPDX-License-Identifier: Apache-2.0
// Recomputation of some stages only, and inputs that the tensor ranks divide: the same bits, and the planned memory and
// traffic.
#include <gtest/gtest.h>

#include <algorithm>

#include "train/preflight.hpp"
#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRun;

const report::GroupTraffic& tensor_traffic(const std::vector<report::GroupTraffic>& traffic) {
  return *std::ranges::find(traffic, "tensor", &report::GroupTraffic::group);
}

train::Preflight plan(const TinyRun& run) {
  config::RunConfig config = run.config();
  config.data.training.paths.clear(); // a plan needs no samples
  train::Preflight out = train::preflight(config, train::choose_placement(config), null_log());
  EXPECT_TRUE(out.refusals.empty());
  return out;
}

/// Of a rank: what each of `what` ("block") keeps for a microbatch.
std::size_t kept_by(const train::RankPlan& plan, const std::string& what) {
  for (const executor::ActivationPart& part : plan.activations)
    if (part.what == what) return part.bytes;
  return 0;
}

std::size_t activations_of(const train::RankPlan& plan) {
  std::size_t out = 0;
  for (const train::MemoryRow& row : plan.memory)
    if (std::string(row.what) == "activations") out = row.bytes;
  return out;
}

/// Each rank allocates what was planned.
void expect_planned_memory(const TinyRun& run) {
  const config::RunConfig config = run.config();
  const train::Preflight planned = plan(run);
  std::vector<std::vector<train::MemoryRow>> memory(planned.plans.size());
  test::run_ranks(config, train::layout_of(config),
                  [&memory](train::Rank& rank, int index) { memory[static_cast<std::size_t>(index)] = rank.memory(); });
  for (const train::RankPlan& of : planned.plans) {
    const std::vector<train::MemoryRow>& used = memory[static_cast<std::size_t>(of.ranks.front())];
    ASSERT_EQ(used.size(), of.memory.size());
    for (std::size_t row = 0; row < used.size(); ++row)
      EXPECT_EQ(used[row].bytes, of.memory[row].bytes) << used[row].what << " of rank " << of.ranks.front();
  }
}

void expect_equal_bits(const std::vector<test::RankTrace>& found, const std::vector<test::RankTrace>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_EQ(found[rank].trace, expected[rank].trace) << rank;
    EXPECT_EQ(found[rank].weights, expected[rank].weights) << rank;
    EXPECT_EQ(found[rank].held_out, expected[rank].held_out) << rank;
  }
}

/// Five and four blocks on two pipeline ranks, and two tensor ranks.
struct TwoByTwo : TinyRun {
  explicit TwoByTwo(const std::string& schedule) {
    keys["model.layers"] = "9";
    keys["parallel.tensor"] = "2";
    keys["parallel.pipeline"] = "2";
    keys["model.dropout"] = "0.1";
    keys["schedule.plugin"] = text("\"{}\"", schedule);
    keys["kernels.plugin"] = "\"kernels-cpu\"";
  }
};

TEST(RecomputedStages, ChangeNoBitAndNeedThePlannedMemory) {
  for (const char* schedule : {"sched-1f1b", "sched-zb-h1", "sched-interleaved"}) {
    TwoByTwo run(schedule);
    const bool chunks = std::string(schedule) == "sched-interleaved";
    if (chunks) run.keys["parallel.chunks"] = "2";
    run.keys["train.precision"] = "\"bf16\"";
    const std::vector<test::RankTrace> kept = test::train_ranks(run, 2);
    const std::vector<std::pair<const char*, const char*>> lists =
        chunks
            ? std::vector<std::pair<const char*, const char*>>{{R"(["full", "none", "cheap", "full"])", "[2, 1, 1, 0]"}}
            : std::vector<std::pair<const char*, const char*>>{
                  {R"(["full", "cheap"])", "1"}, {R"(["none", "full"])", "[1, 3]"}, {R"("full")", "[2, 0]"}};
    for (const auto& [recompute, layers] : lists) {
      SCOPED_TRACE(text("{} {} {}", schedule, recompute, layers));
      run.keys["memory.recompute"] = recompute;
      run.keys["memory.recompute_layers"] = layers;
      expect_equal_bits(test::train_ranks(run, 2), kept);
      expect_planned_memory(run);
    }
  }
}

/// A stage has the memory of a run that recomputes all stages, or none, in the same way.
TEST(RecomputedStages, HaveTheirMemory) {
  TwoByTwo run("sched-1f1b");
  const train::Preflight none = plan(run);
  run.keys["memory.recompute"] = "\"full\"";
  run.keys["memory.recompute_layers"] = "2";
  const train::Preflight full = plan(run);
  run.keys["memory.recompute"] = R"(["full", "none"])";
  run.keys["memory.recompute_layers"] = "[2, 1]";
  const train::Preflight mixed = plan(run);
  ASSERT_EQ(mixed.plans.size(), 4u);
  for (std::size_t at = 0; at < mixed.plans.size(); ++at) {
    const train::Preflight& of = mixed.plans[at].pipeline == 0 ? full : none;
    EXPECT_EQ(mixed.plans[at].bytes(), of.plans[at].bytes()) << at;
    EXPECT_LT(full.plans[at].bytes(), none.plans[at].bytes()) << at;
  }
  ASSERT_EQ(mixed.balance.stages.size(), 2u);
  EXPECT_EQ(mixed.balance.stages[0].flops.backward_input, full.balance.stages[0].flops.backward_input);
  EXPECT_EQ(mixed.balance.stages[1].flops.backward_input, none.balance.stages[1].flops.backward_input);
}

TEST(RecomputedStages, AreListedForEachStage) {
  TwoByTwo run("sched-1f1b");
  run.keys["memory.recompute"] = R"(["full", "none", "none"])";
  run.keys["memory.recompute_layers"] = "[]";
  const config::LoadResult loaded = run.load();
  ASSERT_EQ(loaded.refusals.size(), 2u);
  EXPECT_NE(loaded.refusals[0].text.find("memory.recompute lists values for 3 stages, but parallel.pipeline = 2 x "
                                         "parallel.chunks = 1 makes 2"),
            std::string::npos)
      << loaded.refusals[0].text;
  EXPECT_NE(loaded.refusals[1].text.find("memory.recompute_layers lists values for 0 stages"), std::string::npos);
  run.keys["memory.recompute"] = R"(["full", "some"])";
  run.keys["memory.recompute_layers"] = "1";
  ASSERT_EQ(run.load().refusals.size(), 1u);
  EXPECT_NE(
      run.load().refusals[0].text.find("memory.recompute must be one of none, cheap, full or optimal, got \"some\""),
      std::string::npos);
}

/// Stages of one rank that begin with a block, and boundaries that are gathered, too.
TEST(PartitionedActivations, ChangeNoBitAndNeedThePlannedMemory) {
  for (const char* schedule : {"sched-1f1b", "sched-zb-h1", "sched-zb-v", "sched-interleaved"})
    for (const char* layers : {"1", "3"})
      for (const bool scattered : {false, true}) {
        SCOPED_TRACE(text("{} {} {}", schedule, layers, scattered));
        TwoByTwo run(schedule);
        const std::string name = schedule;
        if (name == "sched-zb-v" || name == "sched-interleaved") run.keys["parallel.chunks"] = "2";
        if (scattered) run.keys["parallel.scatter_gather"] = "true";
        if (name == "sched-zb-h1") run.keys["train.precision"] = "\"bf16\"";
        const std::vector<test::RankTrace> kept = test::train_ranks(run, 2);
        run.keys["memory.recompute"] = "\"full\"";
        run.keys["memory.recompute_layers"] = layers;
        run.keys["memory.partition_activations"] = "true";
        expect_equal_bits(test::train_ranks(run, 2), kept);
        expect_planned_memory(run);
      }
}

/// A block keeps 1/t of its input for each microbatch; the whole one exists once.
TEST(PartitionedActivations, DivideWhatIsKept) {
  TinyRun run;
  run.keys["model.layers"] = "4";
  run.keys["model.hidden"] = "64";
  run.keys["model.heads"] = "4";
  run.keys["model.sequence"] = "32";
  run.keys["parallel.tensor"] = "4";
  run.keys["batch.global"] = "8";
  run.keys["memory.recompute"] = "\"full\"";
  const train::RankPlan whole = plan(run).plans.front();
  run.keys["memory.partition_activations"] = "true";
  const train::RankPlan divided = plan(run).plans.front();
  constexpr std::size_t kInput = 32 * 64 * 4, kMicrobatches = 8, kBlocks = 4;
  EXPECT_EQ(kept_by(whole, "block"), kInput);
  EXPECT_EQ(kept_by(divided, "block"), kInput / 4);
  EXPECT_EQ(
      activations_of(whole) - activations_of(divided) + kept_by(divided, "workspace") - kept_by(whole, "workspace"),
      kMicrobatches * kBlocks * (kInput - kInput / 4));
  EXPECT_EQ(kept_by(divided, "workspace") - kept_by(whole, "workspace"), kInput); // gathered
}

/// Each group of each microbatch is gathered once: a rank sends its part to t - 1 others.
TEST(PartitionedActivations, AreGatheredOnceInAStep) {
  TwoByTwo run("sched-1f1b");
  run.keys["model.dropout"] = "0";
  run.keys["memory.recompute"] = "\"full\"";
  run.keys["memory.recompute_layers"] = "2";
  const auto traffic = [&run](int steps) {
    std::vector<report::GroupTraffic> out;
    for (const test::RankTrace& rank : test::train_ranks(run, steps)) out.push_back(tensor_traffic(rank.traffic));
    return out;
  };
  const std::vector<report::GroupTraffic> whole = traffic(1);
  const train::Preflight planned_whole = plan(run);
  run.keys["memory.partition_activations"] = "true";
  const std::vector<report::GroupTraffic> divided = traffic(1);
  const train::Preflight planned = plan(run);
  constexpr std::uint64_t kPart = 6 * 8 * 4 / 2, kMicrobatches = 4;
  for (const train::RankPlan& of : planned.plans) {
    const auto rank = static_cast<std::size_t>(of.ranks.front());
    const std::uint64_t groups = of.pipeline == 0 ? 3 : 2; // of five blocks, and of four
    EXPECT_EQ(divided[rank].bytes_out - whole[rank].bytes_out, groups * kMicrobatches * kPart) << rank;
    EXPECT_EQ(divided[rank].ops - whole[rank].ops, groups * kMicrobatches) << rank;
    const report::GroupTraffic& of_plan = tensor_traffic(of.traffic.front());
    const report::GroupTraffic& of_whole = tensor_traffic(planned_whole.plans[rank].traffic.front());
    EXPECT_EQ(of_plan.bytes_out - of_whole.bytes_out, groups * kMicrobatches * kPart) << rank;
  }
}

/// With sequence parallelism a rank has its positions only.
TEST(PartitionedActivations, SaveNothingWithDividedPositions) {
  TwoByTwo run("sched-1f1b");
  run.keys["parallel.sequence"] = "true";
  run.keys["memory.recompute"] = "\"full\"";
  const train::Preflight plain = plan(run);
  run.keys["memory.partition_activations"] = "true";
  const train::Preflight divided = plan(run);
  for (std::size_t at = 0; at < plain.plans.size(); ++at) EXPECT_EQ(divided.plans[at].bytes(), plain.plans[at].bytes());
}

} // namespace
} // namespace triax
