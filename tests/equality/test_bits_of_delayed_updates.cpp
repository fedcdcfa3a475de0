// SPDX-License-Identifier: Apache-2.0
// memory.offload_delayed_update on a fake device: the bits of a run whose weights the harness delays by hand, the
// traffic between device and host, and the planned memory.
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

/// The second step and those after it are delayed, but for the last.
Training with_delayed_updates(const std::string& precision) {
  Training out = kTraining;
  out.precision = precision;
  out.inner_kernels = "kernels-cpu"; // updates with the same bits on the device and on the host
  out.clip_grad = 0.5;
  out.steps = 5;
  out.warmup_steps = 1;
  return out;
}

Case delayed(Case run) {
  run.kernels = "kernels-fake-cuda";
  run.host_update = true;
  return run;
}

/// The reference updates on the device of one pipeline rank.
TEST(SameBits, WhereTheHostUpdatesWithADelay) {
  const Training training = with_delayed_updates("bf16");
  for (const Case& run : {Case{.chunks = 3, .scheduler = "sched-interleaved", .micro = 2},
                          Case{.scheduler = "sched-zb-h1", .recompute = true, .host_inputs = true}})
    expect_as_expected(delayed(run), training);
}

/// The delay changes the training, and from its first step on.
TEST(DelayedUpdates, BeginAfterTheWarmUp) {
  const Case run = delayed({});
  Training training = with_delayed_updates("bf16");
  const KeptRank late = train(run, training).front();
  training.warmup_steps = -1;
  const KeptRank at_once = train(run, training).front();
  ASSERT_EQ(late.losses.size(), at_once.losses.size());
  for (std::size_t step = 0; step < late.losses.size(); ++step) // the update of step 2 is the first that is late
    EXPECT_EQ(late.losses[step] == at_once.losses[step], step < 2) << step + 1;
  training.warmup_steps = training.steps;
  const KeptRank warm = train(run, training).front();
  EXPECT_EQ(warm.losses, at_once.losses);
  EXPECT_EQ(warm.held_out, at_once.held_out);
}

/// Rounded gradients have other bits than those of a device: the reference updates on the host too.
TEST(SameBits, WhereTheHostUpdatesRoundedGradientsWithADelay) {
  Training training = with_delayed_updates("bf16");
  training.sent_gradients = "bf16";
  const Case run = delayed({.chunks = 2, .scheduler = "sched-interleaved"});
  Training by_hand = training;
  by_hand.delay_by_hand = true;
  Case one = run;
  one.chunks = 1;
  one.scheduler = "sched-gpipe";
  const Ranks reference = train(one, by_hand);
  expect_as_expected(run, training, &reference);
}

/// A skipped step changes nothing, so an update stays pending in it. The loss scale grows again after two steps, which
/// skips steps between updates.
TEST(SameBits, WhereADelayedUpdateWaitsInSkippedSteps) {
  Training training = with_delayed_updates("fp16");
  training.clip_grad = 0;
  training.initial_scale = 0x1p23;
  training.scale_window = 2;
  training.steps = 9;
  training.warmup_steps = 0;
  const Case run = delayed({.chunks = 3, .scheduler = "sched-interleaved"});
  expect_as_expected(run, training);
  const KeptRank rank = train(run, training).front();
  bool skips_while_pending = false;
  for (std::size_t step = 1; step < rank.skipped.size(); ++step)
    skips_while_pending |= rank.skipped[step] && !rank.skipped[step - 1];
  EXPECT_TRUE(skips_while_pending);
}

/// Gradients leave in their step, and weights arrive in the next one.
TEST(HostTraffic, OfDelayedUpdatesIsThatOfUpdates) {
  const Case run = delayed({});
  Training training = with_delayed_updates("bf16");
  training.steps = 4;
  const train::Preflight planned = check(run, training);
  const executor::HostTraffic of_step = planned.plans.front().host_traffic;
  ASSERT_GT(of_step.to_host, 0u);
  const KeptRank rank = train(run, training).front();
  const std::vector<std::uint64_t> sent = {1, 1, 2, 4}; // updates whose weights the device has after a step
  ASSERT_EQ(rank.host_traffic.size(), sent.size());
  for (std::size_t step = 0; step < sent.size(); ++step)
    EXPECT_EQ(rank.host_traffic[step],
              (executor::HostTraffic{(step + 1) * of_step.to_host, sent[step] * of_step.to_device}))
        << step + 1;
}

/// The host has memory for all gradients that are sent and all weights that return.
TEST(PlannedMemory, HasTheGradientsOfDelayedUpdates) {
  test::TinyRun run;
  run.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run.keys["kernels.plugin"] = "\"kernels-fake-cuda\"";
  run.keys["kernels.inner"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"bf16\"";
  run.keys["model.hidden"] = "64";
  run.keys["memory.offload"] = "\"optimizer\"";
  run.keys["memory.offload_delayed_update"] = "true";
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
    ASSERT_EQ(rows.size(), used.size());
    std::map<std::string, std::size_t> bytes;
    for (std::size_t row = 0; row < used.size(); ++row) {
      if (used[row].what != "scratch") { // kernels-cpu needs as much for each thread, and the plan has more threads
        EXPECT_EQ(used[row].bytes, rows[row].bytes) << used[row].what;
      }
      bytes[heading_of(used[row])] = used[row].bytes;
    }
    const bool rounds = std::string_view(sent) == "bf16";
    const auto staged = static_cast<std::size_t>(planned.parameters) * (rounds ? 4 : 6);
    EXPECT_GE(bytes.at("offload staging (host)"), staged);
    EXPECT_LE(bytes.at("offload staging (host)"), staged + staged / 4) << "padding of pieces, and a block in fp32";
    EXPECT_EQ(bytes.contains("offload staging"), rounds);
  }
}

#ifdef TRIAX_WITH_UCX
/// Data ranks update what they own, and gather weights that are late everywhere; tensor ranks update their parts.
TEST(SameBits, WhereTheHostsOfSeveralRanksUpdateWithADelay) {
  Training ucx = with_delayed_updates("bf16");
  ucx.comm = "comm-ucx";
  for (const Case& run : {Case{.pipeline = 2, .data = 2, .scheduler = "sched-1f1b", .shard = "states"},
                          Case{.data = 3, .chunks = 2, .scheduler = "sched-breadth-first", .shard = "gradients"},
                          Case{.data = 2, .chunks = 4, .scheduler = "sched-breadth-first", .shard = "parameters"},
                          Case{.pipeline = 2, .tensor = 2, .data = 2, .chunks = 2, .scheduler = "sched-zb-v"}})
    expect_as_expected(delayed(run), ucx);
}
#endif

} // namespace
} // namespace triax::equality
