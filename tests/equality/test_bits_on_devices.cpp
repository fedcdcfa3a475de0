// SPDX-License-Identifier: Apache-2.0
// A fake device, with delays and with memory that the host cannot access, gives the bits of the host (docs/adr/0001):
// with recomputed inputs on the host, in recorded steps, and through comm-ucx.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "equality/same_bits.hpp"
#include "support/fake_cuda_device.hpp"
#include "train/preflight.hpp"
#include "train/rank_placement.hpp"
#include "train/tiny_ranks.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

/// A device with delays, whose memory the host cannot access, must give the same results as the host.
void expect_as_on_the_host(Case run, const Training& training) {
  const Ranks& host = expected(run, kTraining);
  run.kernels = "kernels-fake-cuda";
  expect_as_expected(run, training, &host);
}

TEST(SameBits, OnADeviceThatIsLate) {
  for (const Case& run : {Case{1, 1, 1, 3, "sched-interleaved", 2, 4, "kernels-reference"},
                          Case{1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-reference"}})
    expect_as_on_the_host(run, kTraining);
}

/// Inputs are copied to the host and back on a stream that is late, too. With chunks, a rank has groups of several
/// stages, and with split backwards, W is between the groups of two microbatches.
TEST(SameBits, WhereInputsOfRecomputedBlocksAreOnTheHost) {
  for (const Case& run :
       {Case{.chunks = 3, .scheduler = "sched-interleaved", .micro = 2, .recompute = true, .host_inputs = true},
        Case{.scheduler = "sched-1f1b", .recompute = true, .host_inputs = true},
        Case{.scheduler = "sched-zb-h1", .recompute = true, .host_inputs = true}})
    expect_as_on_the_host(run, kTraining);
}

/// The third step is captured, with the copies.
TEST(SameBits, WhereInputsAreOnTheHostInARecordedStep) {
  Training recorded = kTraining;
  recorded.steps = 5;
  Training walked = recorded;
  recorded.cuda_graph = true;
  Case run{.chunks = 3, .scheduler = "sched-interleaved", .micro = 2, .kernels = "kernels-fake-cuda"};
  const Ranks expected_bits = train(run, walked);
  run.recompute = run.host_inputs = true;
  const int before = test::fake_recordings_launched();
  expect_as_expected(run, recorded, &expected_bits);
  EXPECT_EQ(test::fake_recordings_launched(), before + 3);
}

/// Each rank allocates what was planned: the inputs of all blocks and microbatches are in pinned memory.
TEST(PlannedMemory, HasInputsOfRecomputedBlocksOnTheHost) {
  test::TinyRun run;
  run.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run.keys["kernels.plugin"] = "\"kernels-fake-cuda\"";
  run.keys["model.layers"] = "4";
  run.keys["model.hidden"] = "64";
  run.keys["model.heads"] = "4";
  run.keys["model.sequence"] = "32";
  run.keys["batch.global"] = "8";
  run.keys["memory.recompute"] = "\"full\"";
  run.keys["memory.offload_activations"] = "true";
  const config::RunConfig config = run.config();
  config::RunConfig without_samples = config;
  without_samples.data.training.paths.clear(); // a plan needs none
  const train::Preflight planned =
      train::preflight(without_samples, train::choose_placement(without_samples), null_log());
  ASSERT_TRUE(planned.refusals.empty());
  std::vector<train::MemoryRow> used;
  test::run_ranks(config, train::layout_of(config), [&used](train::Rank& rank, int) { used = rank.memory(); });
  const std::vector<train::MemoryRow>& rows = planned.plans.front().memory;
  ASSERT_EQ(rows.size(), used.size() + 1);
  EXPECT_EQ(rows.back().what, "checkpoint staging"); // of the loop, not of the rank
  std::size_t on_host = 0;
  for (std::size_t row = 0; row < used.size(); ++row) {
    EXPECT_EQ(used[row].bytes, rows[row].bytes) << used[row].what;
    EXPECT_EQ(used[row].is_on_host, rows[row].is_on_host) << used[row].what;
    if (used[row].what == "activations" && used[row].is_on_host) on_host = used[row].bytes;
  }
  constexpr std::size_t kInput = 32 * 64 * 4, kMicrobatches = 8, kBlocks = 4;
  EXPECT_EQ(on_host, kInput * kMicrobatches * kBlocks);
}

#ifdef TRIAX_WITH_UCX
/// Device memory is staged through pinned host memory, while kernels have delays.
TEST(SameBits, OnDevicesThatAreLateThroughUcx) {
  Training ucx = kTraining;
  ucx.comm = "comm-ucx";
  for (const Case& run :
       {Case{2, 2, 2, 1, "sched-1f1b", 1, 4, "kernels-reference"},
        Case{.data = 3, .chunks = 2, .scheduler = "sched-breadth-first", .shard = "gradients"},
        Case{.data = 2, .chunks = 4, .scheduler = "sched-breadth-first", .shard = "parameters"},
        Case{.pipeline = 2, .tensor = 2, .chunks = 2, .scheduler = "sched-zb-v", .scatter_gather = true},
        Case{.pipeline = 2,
        .tensor = 2,
        .scheduler = "sched-1f1b",
        .recompute = true,
        .partition = true,
        .host_inputs = true},
        Case{.pipeline = 2,
        .tensor = 2,
        .scheduler = "sched-zb-h1",
        .recompute = true,
        .sequence_parallel = true,
        .sequence = 8,
        .host_inputs = true}})
    expect_as_on_the_host(run, ucx);
}
#endif

/// As for kernels that are loaded at their first launch (triax/lazy_load_guard.hpp): once in training, once in
/// evaluation.
TEST(SameBits, WhereDevicesLoadModulesLate) {
  const Case run{1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-fake-cuda"};
  const int before = test::fake_first_uses();
  train(run, kTraining);
  EXPECT_EQ(test::fake_first_uses(), before + 2);
}

/// The third step is captured. It, the two after it and an evaluation in between must equal uncaptured ones.
TEST(SameBits, WhereAStepIsRecorded) {
  Training walked = kTraining;
  walked.steps = 5;
  Training recorded = walked;
  recorded.cuda_graph = true;
  for (const Case& run : {Case{1, 1, 1, 3, "sched-interleaved", 2, 4, "kernels-fake-cuda"},
                          Case{1, 1, 1, 1, "sched-zb-h1", 1, 4, "kernels-fake-cuda"}}) {
    const int before = test::fake_recordings_launched();
    const Ranks expected_bits = train(run, walked);
    EXPECT_EQ(test::fake_recordings_launched(), before);
    expect_as_expected(run, recorded, &expected_bits);
    EXPECT_EQ(test::fake_recordings_launched(), before + 3);
  }
}

} // namespace
} // namespace triax::equality
