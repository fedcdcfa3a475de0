// SPDX-License-Identifier: Apache-2.0
// Which layers each stage gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "executor/sample_model.hpp"
#include "executor/split.hpp"
#include "support/error_of.hpp"

namespace triax {
namespace {

test::SampleModel with_blocks(int blocks) {
  test::SampleModel model;
  model.specs.resize(static_cast<std::size_t>(blocks) + 2);
  return model;
}

std::vector<int> counts(int blocks, int stages, const std::vector<std::int64_t>& split = {}) {
  std::vector<int> out;
  int next = 0;
  for (const executor::StageLayers& of : executor::split_layers(with_blocks(blocks), stages, split)) {
    EXPECT_EQ(of.first, next);
    next += of.count;
    out.push_back(of.count);
  }
  EXPECT_EQ(next, blocks + 2);
  return out;
}

TEST(Split, EndsGetEmbeddingAndHead) {
  EXPECT_EQ(counts(4, 1), (std::vector<int>{6}));
  EXPECT_EQ(counts(4, 2), (std::vector<int>{3, 3}));
  EXPECT_EQ(counts(5, 3), (std::vector<int>{3, 2, 2})); // 2, 2 and 1 blocks
  EXPECT_EQ(counts(5, 3, {1, 4, 0}), (std::vector<int>{2, 4, 1}));
}

TEST(Split, LargestBoundaryCoversOneMicrobatch) {
  test::SampleModel model = test::sample_model();
  const Layout layout = Layout::ptd(2, 1, 1);
  const LayerContext context{layout, 0, 2, 5};
  const auto largest = [&](int stages) {
    return executor::largest_boundary(model, context, executor::split_layers(model, stages, {}));
  };
  EXPECT_EQ(largest(1), 0u);
  EXPECT_EQ(largest(2), 3u * 2 * 4 * 4); // [s, b, h] in f32
  model.specs[1].outputs[0].dtype = DType::f64;
  EXPECT_EQ(largest(2), 3u * 2 * 4 * 8);
}

TEST(Split, ABoundaryIsScatteredInEqualParts) {
  test::SampleModel model = test::sample_model();
  const auto refusal = [&](int tensor, std::int64_t micro) {
    const Layout layout = Layout::ptd(2, tensor, 1);
    return executor::check_scatter(model, {layout, 0, micro, 5}, executor::split_layers(model, 2, {}));
  };
  EXPECT_TRUE(refusal(2, 2).empty()); // [s, b, h] = [3, 2, 4]
  EXPECT_TRUE(refusal(3, 2).empty());
  const Refusals refused = refusal(5, 2);
  EXPECT_EQ(refused.front().message,
            text("parallel.scatter_gather: \"{}\", which {} sends, has 24 elements, which is not "
                 "divisible by parallel.tensor = 5",
                 model.specs[1].outputs[0].name, model.specs[1].name));
  EXPECT_EQ(refused.front().hint, "leave parallel.scatter_gather out, or use another parallel.tensor");

  const Layout three = Layout::ptd(3, 5, 1);
  const Refusals two = executor::check_scatter(model, {three, 0, 2, 5}, executor::split_layers(model, 3, {}));
  EXPECT_EQ(two.size(), 2u) << "one of each boundary";
}

TEST(Split, KeptInputsAreDividedInEqualParts) {
  test::SampleModel model = test::sample_model();
  const auto refusal = [&](int tensor) {
    const Layout layout = Layout::ptd(1, tensor, 1);
    return executor::check_partition(model, {layout, 0, 2, 5});
  };
  EXPECT_TRUE(refusal(4).empty()); // [s, b, h] = [3, 2, 4]
  const Refusals refused = refusal(5);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused.front().message,
            "memory.partition_activations: \"x\", which brief keeps, has 24 elements, which is not divisible by "
            "parallel.tensor = 5");
  for (test::SampleSpec& spec : model.specs)
    for (TensorSpec& input : spec.inputs) input.sharded = true;
  EXPECT_TRUE(refusal(5).empty()) << "each rank has a part already";
}

/// The host keeps parts as well, and what sequence parallelism has divided; the weight gradient reads device memory.
TEST(Split, KeptInputsOnTheHostAreNotReadByWeightGradients) {
  TensorSpec input{"x", {3, 2, 4}, DType::f32, Life::forward_to_input};
  EXPECT_TRUE(executor::is_hosted(input) && executor::is_partitioned(input));
  input.sharded = true;
  EXPECT_TRUE(executor::is_hosted(input));
  EXPECT_FALSE(executor::is_partitioned(input));
  input.life = Life::forward_to_weight;
  EXPECT_FALSE(executor::is_hosted(input));
  EXPECT_FALSE(executor::is_hosted({"tokens", {3, 2}, DType::i32}));
}

TEST(Split, BlocksMustBeLayersOfTheModel) {
  test::SampleModel model = with_blocks(2);
  constexpr int kMaxInt = std::numeric_limits<int>::max();
  for (const auto& [first, blocks] : {std::pair{-1, 2}, {1, -1}, {3, 2}, {kMaxInt, 2}, {1, kMaxInt}}) {
    model.answer = ModelInfo{.blocks = blocks, .first_block = first, .sequence = 3};
    EXPECT_THAT(test::error_of([&] { executor::split_layers(model, 1, {}); }),
                ::testing::HasSubstr(text("{} blocks begin at layer {}", blocks, first)));
  }
}

TEST(Split, IsRefusedWhereItDoesNotFit) {
  const auto reason = [](int blocks, int stages, const std::vector<std::int64_t>& split) {
    const Refusals refused = executor::check_split(with_blocks(blocks), stages, split);
    std::string messages;
    for (const Refusal& refusal : refused) messages += (messages.empty() ? "" : "; ") + refusal.message;
    return messages;
  };
  EXPECT_EQ(reason(4, 2, {}), "");
  EXPECT_EQ(reason(0, 2, {}), "");
  EXPECT_EQ(reason(4, 2, {0, 4}), "");
  EXPECT_EQ(reason(4, 2, {1, 4}), "parallel.split counts 5 blocks, but model.layers is 4");
  EXPECT_EQ(reason(4, 3, {2, 0, 2}), "parallel.split leaves stage 1 without a layer");
  EXPECT_EQ(reason(4, 4, {2, 0, 0, 3}),
            "parallel.split counts 5 blocks, but model.layers is 4; parallel.split leaves stage 1 without a layer; "
            "parallel.split leaves stage 2 without a layer");
  EXPECT_EQ(reason(1, 3, {}),
            "model.layers = 1 is too few for 3 stages (parallel.pipeline x parallel.chunks): stage 1 would have no "
            "layer");
}

} // namespace
} // namespace triax
