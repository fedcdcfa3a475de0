// SPDX-License-Identifier: Apache-2.0
// The gradient after a step, compared with differences of the loss. The tied gradient matters most: training would work
// with one side only, or with one side counted twice.
#include <gtest/gtest.h>

#include <cmath>

#include "train/tiny_run.hpp"

namespace triax {
namespace {

using test::TinyRank;
using test::TinyRun;

class Gradients : public ::testing::Test {
 protected:
  Gradients() {
    run_.keys["train.precision"] = "\"fp64\"";
    run_.keys["model.dropout"] = "0.0";
    run_.keys["optimizer.plugin"] = "\"optim-sgd\"";
    run_.keys["optimizer.lr"] = "0.0"; // the weights do not change
  }
  TinyRun run_;
};

/// Slope of evaluate(), which uses the samples of the first step.
double difference(train::Rank& rank, double& weight) {
  constexpr double kStep = 1e-5;
  const double before = weight;
  weight = before + kStep;
  const double above = rank.evaluate().loss;
  weight = before - kStep;
  const double below = rank.evaluate().loss;
  weight = before;
  return (above - below) / (2 * kStep);
}

TEST_F(Gradients, AreTheLosssSlope) {
  TinyRank rank(run_);
  rank->step();
  for (const train::RankParameter& parameter : rank->parameters())
    for (const std::int64_t at : {std::int64_t{0}, parameter.master.elements() / 2, parameter.master.elements() - 1}) {
      const double slope = difference(*rank, parameter.master.as<double>()[at]);
      EXPECT_NEAR(parameter.gradient.as<double>()[at], slope, 1e-8) << parameter.name << "[" << at << "]";
    }
}

// Token 12 occurs in no sample: its row of the table gets a gradient from the head only.
TEST_F(Gradients, OfATieAreThoseOfBothSides) {
  class FewTokens final : public executor::BatchSource {
   public:
    void microbatch(std::span<const std::int64_t>, const TensorView& tokens, const TensorView& targets) override {
      for (std::int64_t i = 0; i < tokens.elements(); ++i) {
        tokens.as<std::int32_t>()[i] = static_cast<std::int32_t>(i % 3);
        targets.as<std::int32_t>()[i] = static_cast<std::int32_t>((i + 1) % 3);
      }
    }
  } few;
  TinyRank rank(run_.config(), {.training = &few, .held_out = &few});
  rank->step();
  const train::RankParameter& table = rank->parameter("embedding/tokens.weight");
  for (const std::int64_t token : {0, 12}) {
    double* weight = table.master.as<double>() + token * 8;
    for (int column : {0, 5})
      EXPECT_NEAR(table.gradient.as<double>()[token * 8 + column], difference(*rank, weight[column]), 1e-8) << token;
  }
}

TEST_F(Gradients, TheNormIsOverAllParametersOnce) {
  TinyRank rank(run_);
  const double norm = rank->step().grad_norm;
  double squares = 0;
  for (const train::RankParameter& parameter : rank->parameters())
    for (std::int64_t i = 0; i < parameter.gradient.elements(); ++i)
      squares += parameter.gradient.as<double>()[i] * parameter.gradient.as<double>()[i];
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-14);
}

TEST_F(Gradients, OfTheNextStepStartFromZero) {
  run_.keys["batch.global"] = "1";
  TinyRank rank(run_);
  class Same final : public executor::BatchSource {
   public:
    void microbatch(std::span<const std::int64_t>, const TensorView& tokens, const TensorView& targets) override {
      const std::int64_t first = 0;
      source.microbatch({&first, 1}, tokens, targets);
    }
    test::TinySource source;
  } same;
  TinyRank still(run_.config(), {.training = &same});
  const train::StepResult first = still->step();
  EXPECT_EQ(still->step().grad_norm, first.grad_norm);
}

} // namespace
} // namespace triax
