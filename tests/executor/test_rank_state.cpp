// SPDX-License-Identifier: Apache-2.0
// The memory of a rank's gradients: shared accumulators, and what is zeroed before a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/state_of.hpp"

namespace triax {
namespace {

using test::sample_model;
using test::sample_param;
using test::SampleModel;
using test::SampleRank;

/// A first layer, six blocks and a last layer with as many parameters each.
SampleModel equal_layers() {
  SampleModel model = sample_model();
  model.specs.insert(model.specs.begin() + 2, 4, model.specs[2]);
  for (std::size_t layer = 0; layer < model.specs.size(); ++layer) {
    model.specs[layer].name += std::to_string(layer);
    model.specs[layer].params = {sample_param("a", {16, 16}, static_cast<std::uint32_t>(16 * layer + 1))};
  }
  return model;
}

/// The first rank of four data ranks, with six stages that accumulate one after another.
class SharedAccumulators : public ::testing::Test {
 protected:
  SharedAccumulators() { rank_.allocate(); }

  const SampleModel model_ = equal_layers();
  SampleRank rank_{model_,
                   6,
                   1,
                   "0F0 1F0 2F0 3F0 4F0 5F0 5B0 4B0 3B0 2B0 1B0 0B0",
                   {},
                   Layout::ptd(1, 1, 4),
                   Recompute::none,
                   schedule::Sharding::gradients};
};

std::byte* end_of(const TensorView& view) {
  return view.as<std::byte>() + view.bytes();
}

TEST_F(SharedAccumulators, AreNotZeroedBeforeAStep) {
  const executor::Parameters& parameters = rank_.state->parameters();
  ASSERT_TRUE(parameters.shares_accumulators());
  ASSERT_EQ(rank_.training.accumulators(), 2);
  const TensorView zeroed = rank_.state->gradients();
  EXPECT_EQ(zeroed.data(), end_of(parameters.shared_accumulator(1)));
  for (const executor::Parameter& parameter : parameters.all()) {
    EXPECT_LT(parameter.accumulator.data(), zeroed.data()) << parameter.name; // in a slot
    EXPECT_GE(parameter.gradient.data(), zeroed.data()) << parameter.name;
    EXPECT_LE(end_of(parameter.gradient), end_of(zeroed)) << parameter.name;
  }
}

TEST(RankState, AllAccumulatorsAreZeroedIfNoneIsShared) {
  const SampleModel model = sample_model();
  SampleRank rank(model, 1, 1, "0F0 0B0");
  rank.allocate();
  const TensorView zeroed = rank.state->gradients();
  EXPECT_EQ(rank.state->parameters().shared_accumulator_bytes(), 0u);
  EXPECT_EQ(zeroed.data(), rank.state->parameters().all().front().accumulator.data());
  for (const executor::Parameter& parameter : rank.state->parameters().all())
    EXPECT_LE(end_of(parameter.accumulator), end_of(zeroed)) << parameter.name;
}

} // namespace
} // namespace triax
