// SPDX-License-Identifier: Apache-2.0
// memory.offload = "optimizer" on a fake device: the bits of updates on the device, the traffic between device and
// host, and the planned memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "equality/same_bits.hpp"
#include "train/preflight.hpp"
#include "train/rank_placement.hpp"
#include "train/tiny_ranks.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

/// With 16-bit weights. AdamW of this device and of its host is that of kernels-cpu.
Training with_host_updates(const std::string& precision) {
  Training out = kTraining;
  out.precision = precision;
  out.inner_kernels = "kernels-cpu";
  out.clip_grad = 0.5;
  return out;
}

/// The case, with the bits of one pipeline rank whose device updates.
void expect_as_on_the_device(Case run, const Training& training) {
  run.kernels = "kernels-fake-cuda";
  run.host_update = true;
  expect_as_expected(run, training);
}

/// The smallest blocks divide parameters. With chunks, a step updates several stages.
TEST(SameBits, WhereTheHostUpdates) {
  for (const Case& run : {Case{.chunks = 3, .scheduler = "sched-interleaved", .micro = 2},
                          Case{.scheduler = "sched-zb-h1", .recompute = true, .host_inputs = true}})
    expect_as_on_the_device(run, with_host_updates("bf16"));
}

/// The host learns that a step is skipped before it gets a gradient.
TEST(SameBits, WhereTheHostSkipsSteps) {
  Training training = with_host_updates("fp16");
  training.clip_grad = 0;
  training.initial_scale = 0x1p23;
  training.steps = 5;
  const Case run{.chunks = 3, .scheduler = "sched-interleaved", .kernels = "kernels-fake-cuda", .host_update = true};
  expect_as_expected(run, training);
  const KeptRank rank = train(run, training).front();
  EXPECT_TRUE(rank.skipped.front());
  EXPECT_FALSE(rank.skipped.back());
  executor::HostTraffic of_step;
  for (const train::RankPlan& plan : check(run, training).plans) of_step = plan.host_traffic;
  executor::HostTraffic expected;
  for (std::size_t step = 0; step < rank.skipped.size(); ++step) {
    if (!rank.skipped[step]) {
      expected.to_host += of_step.to_host;
      expected.to_device += of_step.to_device;
    }
    EXPECT_EQ(rank.host_traffic[step], expected) << step;
  }
}

/// Two bytes for each parameter, and as many back; gradients that are not rounded have four. Rounding them changes the
/// weights.
TEST(HostTraffic, IsAGradientAndAWeightForEachParameterAndStep) {
  Case run{.kernels = "kernels-fake-cuda", .host_update = true};
  Training training = with_host_updates("bf16");
  const KeptRank exact = train(run, training).front();
  training.sent_gradients = "bf16";
  const train::Preflight planned = check(run, training);
  const KeptRank rounded = train(run, training).front();
  const auto parameters = static_cast<std::uint64_t>(planned.parameters);
  ASSERT_GT(parameters, 0u);
  EXPECT_EQ(planned.plans.front().host_traffic, (executor::HostTraffic{2 * parameters, 2 * parameters}));
  for (std::size_t step = 0; step < rounded.host_traffic.size(); ++step) {
    const std::uint64_t steps = step + 1;
    EXPECT_EQ(rounded.host_traffic[step], (executor::HostTraffic{2 * steps * parameters, 2 * steps * parameters}));
    EXPECT_EQ(exact.host_traffic[step], (executor::HostTraffic{4 * steps * parameters, 2 * steps * parameters}));
  }
  EXPECT_EQ(rounded.losses.front(), exact.losses.front());
  EXPECT_NE(rounded.parameters.at("embedding/tokens.weight").weights,
            exact.parameters.at("embedding/tokens.weight").weights);
  EXPECT_NEAR(rounded.losses.back(), exact.losses.back(), 0.05);
}

/// Each rank allocates what was planned: the device has no master weights and no state of the optimizer.
TEST(PlannedMemory, HasTheStateThatTheHostUpdatesInItsMemory) {
  test::TinyRun run;
  run.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run.keys["kernels.plugin"] = "\"kernels-fake-cuda\"";
  run.keys["kernels.inner"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"bf16\"";
  run.keys["model.hidden"] = "64";
  run.keys["memory.offload"] = "\"optimizer\"";
  run.keys["memory.offload_buffer_bytes"] = "65536";
  for (const char* sent : {"fp32", "bf16"}) {
    SCOPED_TRACE(sent);
    run.keys["memory.offload_gradients"] = text("\"{}\"", sent);
    const config::RunConfig config = run.config();
    config::RunConfig without_samples = config;
    without_samples.data.training.paths.clear(); // a plan needs none
    const train::Preflight planned =
        train::preflight(without_samples, train::choose_placement(without_samples), null_log());
    ASSERT_TRUE(planned.refusals.empty()) << planned.refusals.front().message;
    std::vector<train::MemoryRow> used;
    test::run_ranks(config, train::layout_of(config), [&used](train::Rank& rank, int) { used = rank.memory(); });
    const std::vector<train::MemoryRow>& rows = planned.plans.front().memory;
    ASSERT_EQ(rows.size(), used.size()); // checkpoints are written from the state
    std::map<std::string, std::size_t> bytes;
    for (std::size_t row = 0; row < used.size(); ++row) {
      if (used[row].what != "scratch") { // kernels-cpu needs as much for each thread, and the plan has more threads
        EXPECT_EQ(used[row].bytes, rows[row].bytes) << used[row].what;
      }
      EXPECT_EQ(used[row].is_on_host, rows[row].is_on_host) << used[row].what;
      bytes[heading_of(used[row])] = used[row].bytes;
    }
    const auto parameters = static_cast<std::size_t>(planned.parameters);
    EXPECT_EQ(bytes.at("weights"), 0u);
    EXPECT_EQ(bytes.at("optimizer state"), 0u);
    EXPECT_GE(bytes.at("optimizer state (host)"), 12 * parameters); // master weights and two moments
    EXPECT_LT(bytes.at("optimizer state (host)"), 13 * parameters); // with padding of pieces and blocks
    EXPECT_GE(bytes.at("working weights"), 2 * parameters);
    EXPECT_EQ(bytes.contains("offload staging"), std::string_view(sent) == "bf16");
    EXPECT_GT(bytes.at("offload staging (host)"), 0u);
    EXPECT_EQ(planned.plans.front().offload_bytes, 0u); // of a file
  }
}

#ifdef TRIAX_WITH_UCX
/// Data ranks update what they own, and tensor ranks their parts.
TEST(SameBits, WhereTheHostsOfSeveralRanksUpdate) {
  Training ucx = with_host_updates("bf16");
  ucx.comm = "comm-ucx";
  for (const Case& run : {Case{.pipeline = 2, .data = 2, .scheduler = "sched-1f1b", .shard = "states"},
                          Case{.data = 3, .chunks = 2, .scheduler = "sched-breadth-first", .shard = "gradients"},
                          Case{.data = 2, .chunks = 4, .scheduler = "sched-breadth-first", .shard = "parameters"},
                          Case{.pipeline = 2, .tensor = 2, .data = 2, .chunks = 2, .scheduler = "sched-zb-v"}})
    expect_as_on_the_device(run, ucx);
}
#endif

} // namespace
} // namespace triax::equality
