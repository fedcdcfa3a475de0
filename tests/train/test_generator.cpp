// SPDX-License-Identifier: Apache-2.0
// Generating on one rank: planned memory, 16-bit weights, refusals. tests/equality compares its logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "train/generating.hpp"

namespace triax {
namespace {

using test::error_of;
using test::TinyGenerator;
using test::TinyRun;
using ::testing::HasSubstr;

/// On the only rank of a layout.
void generate_alone(const config::RunConfig& config, const TinyGenerator::Sizes& sizes,
                    const std::function<void(TinyGenerator&)>& body) {
  test::run_ranks(train::layout_of(config), [&](test::Rank& rank) {
    TinyGenerator of(config, rank, sizes);
    body(of);
  });
}

std::string refusal(const TinyRun& run, const TinyGenerator::Sizes& sizes) {
  return error_of([&] { generate_alone(run.config(), sizes, [](TinyGenerator&) {}); });
}

/// Keys and values: 2 h numbers per token, layer and sequence.
TEST(Generator, TheCacheIsInThePlannedMemory) {
  TinyRun run;
  run.keys["model.hidden"] = "64";
  run.keys["model.sequence"] = "32";
  run.keys["batch.micro"] = "2";
  generate_alone(run.config(), {.microbatches = 3, .sequence = 24, .max_rows = 4}, [](TinyGenerator& of) {
    std::size_t cache = 0;
    for (const executor::RankMemory::Row& row : of.state().memory(of.scratch, DeviceKind::host)) {
      if (std::string(row.what) == "cache") cache = row.bytes;
      if (std::string(row.what) == "gradients" || std::string(row.what) == "optimizer state") {
        EXPECT_EQ(row.bytes, 0u) << row.what;
      }
    }
    EXPECT_EQ(cache, 2u * 2 * (24 * 2 * 64) * 3 * 4); // layers, keys and values, elements, microbatches, bytes
  });
}

/// The rows "loading" on a device: of the device, and of the host.
std::pair<std::size_t, std::size_t> loading(TinyGenerator& of, DeviceKind device) {
  std::pair<std::size_t, std::size_t> out;
  for (const executor::RankMemory::Row& row : of.state().memory(of.scratch, device))
    if (std::string(row.what) == "loading") (row.kind == MemoryKind::pinned ? out.second : out.first) += row.bytes;
  return out;
}

/// Weights are read in fp32: into their place if they are stored so on the host, else through blocks.
TEST(Generator, TheLargestParameterIsInThePlannedMemory) {
  TinyRun run;
  run.keys["model.hidden"] = "64";
  const std::size_t largest = 4 * 64 * 64 * sizeof(float); // a weight of the MLP
  using Loading = std::pair<std::size_t, std::size_t>;
  generate_alone(run.config(), {}, [&](TinyGenerator& of) {
    EXPECT_EQ(loading(of, DeviceKind::host), Loading(0, 0));
    EXPECT_EQ(loading(of, DeviceKind::cuda), Loading(0, largest));
  });
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"bf16\"";
  generate_alone(run.config(), {}, [&](TinyGenerator& of) {
    EXPECT_EQ(loading(of, DeviceKind::host), Loading(0, largest));
    EXPECT_EQ(loading(of, DeviceKind::cuda), Loading(largest, largest));
  });
}

/// Later rows are zeros (Life::sequence), whatever earlier sequences have left.
TEST(Generator, ARestartClearsTheCache) {
  const TinyRun run;
  generate_alone(run.config(), {}, [](TinyGenerator& of) {
    std::size_t cache = 0;
    for (const executor::RankMemory::Row& row : of.state().memory(of.scratch, DeviceKind::host))
      if (std::string(row.what) == "cache") cache = row.bytes;
    const auto zeros = [&] {
      std::vector<bool> out; // of each block that may be the cache
      for (const std::span<const std::byte> block : of.state().blocks())
        if (block.size() == cache) out.push_back(std::ranges::count(block, std::byte{0}) == std::ssize(block));
      return out;
    };
    of.load_nan();
    of.append(6);
    EXPECT_THAT(zeros(), ::testing::ElementsAre(false));
    of.generator().restart();
    EXPECT_THAT(zeros(), ::testing::ElementsAre(true));
  });
}

TEST(Generator, CallsHaveAFewSizes) {
  TinyRun run;
  generate_alone(run.config(), {.sequence = 6, .max_rows = 6},
                 [](TinyGenerator& of) { EXPECT_THAT(of.state().call_sizes(), ::testing::ElementsAre(6, 4, 2, 1)); });
  generate_alone(run.config(), {.sequence = 6, .max_rows = 1},
                 [](TinyGenerator& of) { EXPECT_THAT(of.state().call_sizes(), ::testing::ElementsAre(1)); });
}

/// Logits are rounded to bf16, with a relative error of 1/256.
TEST(Generator, WeightsAreRoundedAsForTraining) {
  TinyRun run;
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run.keys["train.precision"] = "\"bf16\"";
  const config::RunConfig config = run.config();
  const std::vector<test::RankTrace> trained = test::train_ranks(config, train::layout_of(config), 3);
  const TinyGenerator::Sizes sizes{.microbatches = 4, .sequence = 6, .max_rows = 6};
  EXPECT_NEAR(test::loss_of(test::generate(config, trained, {6}, sizes), 6, 13), trained.front().held_out, 1e-5);
}

TEST(Generator, RefusesMoreThanItHasMemoryFor) {
  TinyRun run;
  generate_alone(run.config(), {.microbatches = 1, .sequence = 5, .max_rows = 3}, [](TinyGenerator& of) {
    EXPECT_THAT(error_of([&] { of.append(4); }), HasSubstr("append() got 4 tokens; at most 3 are allowed in one call"));
    of.append(3);
    EXPECT_THAT(error_of([&] { of.append(3); }),
                HasSubstr("the cache has 5 positions, of which 3 are used; 3 more do not fit"));
    EXPECT_EQ(of.generator().length(), 3);
    of.append(2);
    of.generator().restart();
    of.append(3);
    std::int32_t token = 13;
    EXPECT_THAT(error_of([&] {
                  of.generator().append({&token, DType::i32, {1, 1}});
                }),
                HasSubstr("token 13 is not in the vocabulary of 13 tokens"));
    EXPECT_THAT(error_of([&] {
                  of.generator().append({&token, DType::i32, {1}});
                }),
                HasSubstr("tokens are i32 [n, 1], got i32[1]"));
  });
  EXPECT_THAT(refusal(run, {.sequence = 7, .max_rows = 1}),
              HasSubstr("a cache of 7 positions, but the model has 6 (model.sequence)"));
  EXPECT_THAT(refusal(run, {.sequence = 4, .max_rows = 5}), HasSubstr("a call of 5 rows and a cache of 4 positions"));
}

TEST(Generator, OnlyTheLastStageHasLogits) {
  TinyRun run;
  run.keys["parallel.pipeline"] = "2";
  const config::RunConfig config = run.config();
  test::run_ranks(train::layout_of(config), [&](test::Rank& rank) {
    TinyGenerator of(config, rank, {});
    of.append(1);
    const std::string error = error_of([&] { of.generator().logits(0); });
    EXPECT_THAT(error, HasSubstr(rank.index() == 0 ? "pipeline rank 0 has no logits" : "no error"));
  });
}

TEST(Generator, AModelThatCannotGenerateIsRefused) {
  TinyRun run;
  test::use_divided_model(run);
  EXPECT_THAT(refusal(run, {.sequence = 1, .max_rows = 1}), HasSubstr("model-divided cannot generate"));
}

/// Layers of one purpose in a run of the other.
TEST(Generator, PurposesAreNotMixed) {
  const config::RunConfig config = TinyRun().config();
  const Layout layout = train::layout_of(config);
  const train::RankPlugins plugins(config, layout, 0, 1, null_log());
  LayerContext context = train::layer_context(config, plugins.model(), layout, 0);
  EXPECT_THAT(error_of([&] {
                executor::GenerateState({plugins.model(), context});
              }),
              HasSubstr("generating needs layers of Purpose::generate, not train"));
  context.purpose = Purpose::generate;
  context.sequence_parallel = true;
  EXPECT_THAT(error_of([&] {
                executor::GenerateState({plugins.model(), context});
              }),
              HasSubstr("generating with sequence parallelism"));
}

} // namespace
} // namespace triax
