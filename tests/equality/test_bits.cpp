// SPDX-License-Identifier: Apache-2.0
// With tensor size, data size and microbatch size fixed, pipeline size, chunks and schedule do not change a bit
// (docs/adr/0001), and neither does a second run. Every case is compared with GPipe on one pipeline rank, shard by
// shard: losses, norms, the loss on held-out samples, the gradients of the last step and the weights after it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "equality/same_bits.hpp"
#include "support/sanitizers.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

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
