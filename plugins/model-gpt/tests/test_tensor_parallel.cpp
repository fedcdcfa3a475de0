// SPDX-License-Identifier: Apache-2.0
// model-gpt split over tensor ranks has the same loss and gradients as on one rank, with dropout.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "gpt_run.hpp"
#include "support/ranks.hpp"

namespace triax::model_gpt_test {
namespace {

// 11 tokens over 2 or 4 ranks: the last rank's part of the vocabulary is padded.
constexpr Setting kSetting{.hidden = 16, .dropout = 0.25};
struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> gradients; // of whole parameters
};

/// Copies this rank's part of a gradient into `whole`, which starts as NaN. Replicated parts must agree.
void merge(std::vector<double>& whole, const Parameter& parameter) {
  const std::vector<double> local = values_of(parameter.gradient);
  whole.resize(static_cast<std::size_t>(parameter.spec.global.elements()), std::nan(""));
  for (std::size_t i = 0; i < local.size(); ++i) {
    const std::int64_t global = global_element(parameter.spec, static_cast<std::int64_t>(i));
    if (global < 0) {
      EXPECT_EQ(local[i], 0) << parameter.name << ": padding has a gradient";
      continue;
    }
    double& element = whole[static_cast<std::size_t>(global)];
    if (!std::isnan(element)) {
      EXPECT_EQ(element, local[i]) << parameter.name << " differs between ranks";
    }
    element = local[i];
  }
}

Outcome outcome_of(const Setting& setting, int tensor) {
  Outcome outcome;
  std::mutex mutex;
  const Layout layout = Layout::ptd(1, tensor, 1);
  test::run_ranks(layout, [&](test::Rank& rank) {
    const Groups groups = rank.join_axes();
    GptRun run(setting, rank.device(), groups, layout, rank.index());
    const std::vector<double> losses = run.forward(kSamples);
    run.backward();
    const std::lock_guard lock(mutex);
    if (!outcome.losses.empty()) {
      EXPECT_EQ(losses, outcome.losses) << "ranks differ in the loss";
    }
    outcome.losses = losses;
    for (const Parameter& parameter : run.parameters()) merge(outcome.gradients[parameter.name], parameter);
  });
  return outcome;
}

void compare(const Outcome& split, const Outcome& whole, double tolerance) {
  for (std::size_t i = 0; i < whole.losses.size(); ++i)
    EXPECT_NEAR(split.losses[i], whole.losses[i], tolerance * whole.losses[i]);
  for (const auto& [name, expected] : whole.gradients) {
    const std::vector<double>& gradient = split.gradients.at(name);
    ASSERT_EQ(gradient.size(), expected.size());
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(gradient[i], expected[i], tolerance * largest) << name << ", element " << i;
  }
}

class TensorParallel : public ::testing::TestWithParam<int> {};

TEST_P(TensorParallel, EqualsOneRank) {
  compare(outcome_of(kSetting, GetParam()), outcome_of(kSetting, 1), 1e-12);
}

TEST_P(TensorParallel, EqualsOneRankInSingle) {
  Setting setting = kSetting;
  setting.compute = DType::f32;
  compare(outcome_of(setting, GetParam()), outcome_of(setting, 1), 2e-6);
}

TEST_P(TensorParallel, SameBitsInEveryRun) {
  const Outcome first = outcome_of(kSetting, GetParam()), second = outcome_of(kSetting, GetParam());
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.gradients, second.gradients);
}

INSTANTIATE_TEST_SUITE_P(Ranks, TensorParallel, ::testing::Values(2, 4));

} // namespace
} // namespace triax::model_gpt_test
