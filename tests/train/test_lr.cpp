// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "train/lr.hpp"

namespace {
using namespace triax;

config::RunConfig run_with(const char* decay, std::int64_t warmup, double min) {
  config::RunConfig run;
  run.optimizer_core.lr = 0.5;
  run.train.steps = 12;
  run.lr.decay = decay;
  run.lr.warmup_steps = warmup;
  run.lr.min = min;
  return run;
}

TEST(LearningRate, WarmsUpLinearly) {
  for (const char* decay : {"constant", "linear", "cosine"}) {
    const config::RunConfig run = run_with(decay, 4, 0.1);
    for (int step = 1; step <= 4; ++step) EXPECT_DOUBLE_EQ(train::learning_rate(run, step), 0.125 * step) << decay;
  }
}

TEST(LearningRate, Constant) {
  for (const int step : {1, 7, 12, 100}) EXPECT_EQ(train::learning_rate(run_with("constant", 0, 0.1), step), 0.5);
}

TEST(LearningRate, LinearEndsAtMinAndStaysThere) {
  const config::RunConfig run = run_with("linear", 4, 0.1);
  EXPECT_DOUBLE_EQ(train::learning_rate(run, 5), 0.45);
  EXPECT_DOUBLE_EQ(train::learning_rate(run, 8), 0.3);
  EXPECT_DOUBLE_EQ(train::learning_rate(run, 12), 0.1);
  EXPECT_DOUBLE_EQ(train::learning_rate(run, 20), 0.1);
}

TEST(LearningRate, CosineIsHalfAWave) {
  const config::RunConfig run = run_with("cosine", 0, 0.1);
  EXPECT_DOUBLE_EQ(train::learning_rate(run, 3), 0.1 + 0.4 * (1 + std::cos(std::numbers::pi / 4)) / 2);
  EXPECT_DOUBLE_EQ(train::learning_rate(run, 6), 0.3);
  EXPECT_NEAR(train::learning_rate(run, 12), 0.1, 1e-15);
}

TEST(LearningRate, AllStepsMayWarmUp) {
  EXPECT_EQ(train::learning_rate(run_with("cosine", 12, 0.1), 12), 0.5);
  EXPECT_DOUBLE_EQ(train::learning_rate(run_with("cosine", 12, 0.1), 13), 0.1);
}

TEST(LearningRate, ARunMayEndInItsWarmUp) {
  for (const char* decay : {"constant", "linear", "cosine"}) {
    const config::RunConfig run = run_with(decay, 20, 0.1); // run of 12 steps
    for (int step = 1; step <= 12; ++step) EXPECT_DOUBLE_EQ(train::learning_rate(run, step), 0.025 * step) << decay;
  }
}

} // namespace
