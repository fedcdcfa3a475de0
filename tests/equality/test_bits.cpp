// SPDX-License-Identifier: Apache-2.0
// With tensor size, data size and microbatch size fixed, pipeline size, chunks and schedule do not change a bit
// (docs/adr/0001), and neither does a second run. Every case is compared with GPipe on one pipeline rank, shard by
// shard: losses, norms, the loss on held-out samples, the gradients of the last step and the weights after it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "equality/harness.hpp"
#include "support/fake_cuda_device.hpp"
#include "support/sanitizers.hpp"
#include "train/rank_setup.hpp"
#include "train/tiny_ranks.hpp"
#include "triax/layout.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

using Ranks = std::vector<KeptRank>;

/// With clipping and weight decay, so that their inputs must be equal too.
const Training kTraining{.clip_grad = 0.1};

/// The same samples and layers on one pipeline rank.
const Ranks& expected(Case run, const Training& training) {
  using Key =
      std::tuple<int, int, std::int64_t, std::int64_t, std::int64_t, std::string, std::string, bool, std::string>;
  static std::map<Key, Ranks> known;
  run.pipeline = run.chunks = 1;
  run.scheduler = "sched-gpipe";
  run.group = 0;
  run.through_file = run.scatter_gather = run.recompute = run.cheap = run.partition = run.host_inputs = false;
  run.shard.clear();
  run.offload = run.host_update = false;
  run.split.clear();
  const Key key{run.tensor,    run.data,    run.micro,          run.microbatches,
                run.layers,    run.kernels, training.precision, run.sequence_parallel,
                training.model};
  if (!known.contains(key)) known[key] = train(run, training);
  return known.at(key);
}

/// The rank with the same tensor and data coordinates on one pipeline rank.
std::size_t counterpart(const Case& run, std::size_t rank) {
  return rank % static_cast<std::size_t>(run.tensor * run.data); // pipeline varies slowest
}

void expect_same_numbers(const std::vector<double>& one, const std::vector<double>& other, const char* what) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t step = 0; step < one.size(); ++step)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(one[step]), std::bit_cast<std::uint64_t>(other[step]))
        << what << " of step " << step + 1 << ": " << text("{}, and {}", one[step], other[step]);
}

/// Data ranks may divide weights and gradients: `part` begins at element `first` of `whole`.
bool is_part(const std::vector<std::byte>& part, std::int64_t first, const std::vector<std::byte>& whole, DType dtype) {
  const std::size_t begin = static_cast<std::size_t>(first) * bytes_of(dtype);
  return begin + part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// `one` may hold a subset of the parameters of `all`.
void expect_same(const KeptRank& one, const KeptRank& all) {
  expect_same_numbers(one.losses, all.losses, "loss");
  expect_same_numbers(one.norms, all.norms, "grad_norm");
  expect_same_numbers(one.scales, all.scales, "loss_scale");
  EXPECT_EQ(one.skipped, all.skipped);
  expect_same_numbers({one.held_out}, {all.held_out}, "loss on held-out samples");
  for (const auto& [name, parameter] : one.parameters) {
    ASSERT_TRUE(all.parameters.contains(name)) << name;
    const KeptParameter& other = all.parameters.at(name);
    EXPECT_TRUE(is_part(parameter.gradient, parameter.gradient_first, other.gradient, parameter.dtype))
        << "gradient of " << name;
    EXPECT_TRUE(is_part(parameter.working, parameter.working_first, other.working, parameter.working_dtype))
        << "working weights of " << name;
    EXPECT_TRUE(is_part(parameter.weights, parameter.first, other.weights, parameter.dtype)) << "weights of " << name;
  }
}

/// Every parameter is on some pipeline rank. The tied token table is on the ranks of the first stage and of the last;
/// in a V these are one rank.
void expect_complete(const Case& run, const Ranks& ranks, const Ranks& whole) {
  std::set<std::string> found;
  for (const KeptRank& rank : ranks)
    for (const auto& [name, parameter] : rank.parameters) found.insert(name);
  EXPECT_EQ(found.size(), whole.front().parameters.size());
  EXPECT_TRUE(ranks.front().parameters.contains("embedding/tokens.weight"));
  const bool vee = run.scheduler == "sched-zb-v";
  EXPECT_EQ(ranks.back().parameters.contains("embedding/tokens.weight"), !vee || run.pipeline == 1) << to_text(run);
}

void expect_as_expected(const Case& run, const Training& training = kTraining, const Ranks* same_as = nullptr) {
  SCOPED_TRACE(to_text(run));
  const Ranks& whole = same_as ? *same_as : expected(run, training);
  const Ranks ranks = train(run, training);
  expect_complete(run, ranks, whole);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    SCOPED_TRACE(text("rank {}", rank));
    expect_same(ranks[rank], whole[counterpart(run, rank)]);
    expect_same_numbers(ranks[rank].losses, whole.front().losses, "loss, against rank 0's,");
    expect_same_numbers(ranks[rank].norms, whole.front().norms, "grad_norm, against rank 0's,");
  }
}

struct Sizes {
  int tensor = 1, data = 1;
};

class SameBits : public testing::TestWithParam<Sizes> {};

void expect_all(const std::vector<Case>& cases, const Training& training) {
  ASSERT_FALSE(cases.empty());
  for (const Case& run : cases) {
    expect_as_expected(run, training);
    if (testing::Test::HasFailure()) break; // the other cases would fail too
  }
}

Training of_llama() {
  Training out = kTraining;
  out.model = "model-llama";
  return out;
}

TEST_P(SameBits, AnyPipelineChunksAndSchedule) {
  const std::vector<Case> cases = pipeline_cases(GetParam().tensor, GetParam().data);
  expect_all(cases, kTraining);
  if (all_asked()) expect_all(cases, of_llama());
}

std::vector<Sizes> sizes() {
  if (test::kSanitized) return {{1, 2}, {2, 3}, {4, 1}};
  return {{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}, {4, 2}, {1, 3}, {2, 3}, {4, 3}};
}

INSTANTIATE_TEST_SUITE_P(At, SameBits, testing::ValuesIn(sizes()),
                         [](const auto& of) { return text("t{}_d{}", of.param.tensor, of.param.data); });

/// Every schedule, and what changes passes and traffic.
TEST(SameBits, OfLlama) {
  Case from_a_file{3, 1, 1, 1, "sched-1f1b", 1, 3}, split{1, 1, 3, 1, "sched-1f1b", 1, 2, "kernels-cpu"};
  from_a_file.through_file = split.split_backward = true;
  Training llama = of_llama();
  expect_all(
      {{4, 1, 1, 1, "sched-1f1b", 1, 2, "kernels-reference"},
       {2, 2, 2, 2, "sched-interleaved", 2, 4, "kernels-cpu"},
       {2, 1, 2, 2, "sched-breadth-first", 1, 4, "kernels-reference"},
       {3, 2, 1, 1, "sched-zb-h1", 1, 6, "kernels-cpu"},
       {4, 1, 1, 1, "sched-zb-h2", 1, 8, "kernels-cpu"},
       {2, 4, 1, 2, "sched-zb-v", 1, 4, "kernels-reference"},
       from_a_file,
       split,
       {.pipeline = 2,
        .tensor = 2,
        .kernels = "kernels-cpu",
        .scatter_gather = true,
        .recompute = true,
        .partition = true},
       {.pipeline = 2,
        .tensor = 4,
        .scheduler = "sched-1f1b",
        .kernels = "kernels-cpu",
        .recompute = true,
        .sequence_parallel = true,
        .sequence = 8},
       {.pipeline = 2, .tensor = 2, .scheduler = "sched-zb-h1", .sequence_parallel = true, .sequence = 8},
       {.pipeline = 3,
        .tensor = 2,
        .scheduler = "sched-zb-h1",
        .microbatches = 6,
        .kernels = "kernels-cpu",
        .cheap = true},
       {.pipeline = 2,
        .tensor = 2,
        .chunks = 2,
        .scheduler = "sched-interleaved",
        .cheap = true,
        .sequence_parallel = true,
        .sequence = 8},
       {.pipeline = 2, .data = 2, .chunks = 2, .scheduler = "sched-interleaved", .shard = "states"},
       {.data = 3, .chunks = 3, .scheduler = "sched-breadth-first", .kernels = "kernels-cpu", .shard = "gradients"},
       {.data = 2, .chunks = 4, .scheduler = "sched-breadth-first", .shard = "parameters"}},
      llama);
  llama.precision = "bf16";
  expect_all({{2, 2, 1, 2, "sched-interleaved", 2, 4, "kernels-cpu"},
              {.pipeline = 2, .scheduler = "sched-zb-h2", .kernels = "kernels-cpu", .cheap = true}},
             llama);
}

/// Stages of other sizes, in numbers and chosen by the cost model.
TEST(SameBits, AnySplit) {
  for (const char* const model : {"model-gpt", "model-llama"}) {
    Training training = kTraining;
    training.model = model;
    expect_all({{.pipeline = 3, .scheduler = "sched-1f1b", .split = "[1, 1, 3]"},
                {.pipeline = 3, .scheduler = "sched-1f1b", .split = "[0, 5, 0]"},
                {.pipeline = 3, .scheduler = "sched-zb-h1", .microbatches = 6, .split = "\"auto\""},
                {.pipeline = 2, .tensor = 2, .chunks = 2, .scheduler = "sched-interleaved", .split = "[2, 1, 2, 0]"},
                {.pipeline = 2, .chunks = 2, .scheduler = "sched-interleaved", .split = "\"auto\""},
                {.pipeline = 2, .data = 2, .scheduler = "sched-1f1b", .shard = "parameters", .split = "\"auto\""},
                {.pipeline = 2, .scheduler = "sched-1f1b", .recompute = true, .split = "\"auto\""},
                {.pipeline = 2,
                 .tensor = 2,
                 .scheduler = "sched-1f1b",
                 .recompute = true,
                 .partition = true,
                 .split = "[4, 1]"},
                {.pipeline = 2,
                 .tensor = 2,
                 .scheduler = "sched-1f1b",
                 .recompute = true,
                 .partition = true,
                 .split = "\"auto\""}},
               training);
  }
}

TEST(SameBits, InBf16) {
  Training bf16 = kTraining;
  bf16.precision = "bf16";
  for (const Case& run :
       {Case{4, 1, 1, 1, "sched-zb-h1", 1, 6, "kernels-cpu"},
        Case{2, 2, 2, 2, "sched-interleaved", 2, 4, "kernels-cpu"}, Case{3, 2, 1, 1, "sched-1f1b", 1, 4, "kernels-cpu"},
        Case{.pipeline = 2, .tensor = 4, .kernels = "kernels-cpu", .scatter_gather = true},
        Case{.pipeline = 2, .data = 2, .scheduler = "sched-1f1b", .kernels = "kernels-cpu", .shard = "states"},
        Case{.pipeline = 2,
        .tensor = 2,
        .chunks = 2,
        .scheduler = "sched-zb-v",
        .kernels = "kernels-cpu",
        .offload = true},
        Case{.pipeline = 2, .data = 2, .kernels = "kernels-cpu", .shard = "gradients", .offload = true},
        Case{.pipeline = 3, .scheduler = "sched-zb-h1", .microbatches = 6, .kernels = "kernels-cpu", .cheap = true},
        Case{.pipeline = 2,
        .tensor = 2,
        .scheduler = "sched-1f1b",
        .kernels = "kernels-cpu",
        .cheap = true,
        .sequence_parallel = true,
        .sequence = 8},
        Case{.data = 2,
        .chunks = 4,
        .scheduler = "sched-breadth-first",
        .kernels = "kernels-cpu",
        .shard = "parameters",
        .offload = true}})
    expect_as_expected(run, bf16);
}

/// The first steps overflow in every layout, and later ones do not.
void expect_skipped_steps(const std::vector<Case>& cases, Training training, double initial_scale) {
  training.precision = "fp16";
  training.initial_scale = initial_scale;
  training.steps = 5;
  for (const Case& run : cases) {
    expect_as_expected(run, training);
    const KeptRank& one = expected(run, training).front();
    EXPECT_TRUE(one.skipped.front()) << to_text(run);
    EXPECT_NE(std::ranges::find(one.skipped, false), one.skipped.end()) << to_text(run);
  }
}

TEST(SameBits, InFp16) {
  expect_skipped_steps(
      {{4, 1, 1, 1, "sched-zb-h1", 1, 6, "kernels-cpu"},
       {2, 2, 2, 2, "sched-interleaved", 2, 4, "kernels-cpu"},
       {3, 2, 1, 1, "sched-1f1b", 1, 4, "kernels-cpu"},
       {.data = 2, .kernels = "kernels-cpu", .shard = "states"},
       {.pipeline = 2, .kernels = "kernels-cpu", .split_backward = true, .offload = true},
       {.data = 2, .kernels = "kernels-cpu", .shard = "states", .offload = true},
       {.pipeline = 2, .kernels = "kernels-cpu", .split_backward = true, .cheap = true},
       {.pipeline = 2,
        .tensor = 2,
        .scheduler = "sched-1f1b",
        .kernels = "kernels-cpu",
        .recompute = true,
        .partition = true},
       {.data = 2, .chunks = 4, .scheduler = "sched-breadth-first", .kernels = "kernels-cpu", .shard = "parameters"}},
      kTraining, 0x1p23);
}

/// Its gradients are larger.
TEST(SameBits, OfLlamaInFp16) {
  expect_skipped_steps(
      {{2, 2, 1, 2, "sched-zb-v", 1, 4, "kernels-cpu"},
       {.data = 2, .kernels = "kernels-cpu", .shard = "states"},
       {.pipeline = 2, .tensor = 2, .scheduler = "sched-zb-h1", .kernels = "kernels-cpu", .cheap = true}},
      of_llama(), 0x1p19);
}

#ifdef TRIAX_WITH_UCX
/// The tensor and data axes use comm-local.
TEST(SameBits, WithABackendForThePipelineAlone) {
  Training mixed = kTraining;
  mixed.pipeline_comm = "comm-ucx";
  for (const Case& run : {Case{2, 2, 1, 2, "sched-interleaved", 1, 4, "kernels-reference"},
                          Case{2, 2, 2, 1, "sched-1f1b", 1, 4, "kernels-cpu"},
                          Case{.pipeline = 2, .tensor = 4, .scheduler = "sched-zb-h1", .scatter_gather = true}})
    expect_as_expected(run, mixed);
}
#endif

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

TEST(SameBits, RunAgain) {
  for (const char* kernels : {"kernels-reference", "kernels-cpu"}) {
    const Case run{2, 2, 2, 2, "sched-interleaved", 1, 4, kernels};
    const Ranks one = train(run, kTraining), again = train(run, kTraining);
    for (std::size_t rank = 0; rank < one.size(); ++rank) {
      SCOPED_TRACE(text("{}, rank {}", to_text(run), rank));
      expect_same(one[rank], again[rank]);
    }
  }
}

} // namespace
} // namespace triax::equality
