// SPDX-License-Identifier: Apache-2.0
// Training in fp16: the loss scale; steps are skipped on all ranks or none, and change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <thread>

#include "executor/executor.hpp"
#include "train/resumed_run.hpp"
#include "train/tiny_run.hpp"

namespace triax {
namespace {

using test::TinyRank;
using test::TinyRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Fp16Run : public TinyRun {
 public:
  explicit Fp16Run(const char* initial, const char* hysteresis = "1") {
    keys["kernels.plugin"] = "\"kernels-cpu\"";
    keys["train.precision"] = "\"fp16\"";
    keys["model.dropout"] = "0.0";
    keys["loss_scale.initial"] = initial;
    keys["loss_scale.hysteresis"] = hysteresis;
  }
};

/// Every step gets the samples of the first step.
class SameSamples final : public executor::BatchSource {
 public:
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    std::vector<std::int64_t> of(samples.begin(), samples.end());
    for (std::int64_t& sample : of) sample %= 4;
    source_.microbatch(of, tokens, targets);
  }

 private:
  test::TinySource source_;
};

std::map<std::string, std::vector<std::byte>> weights_of(train::Rank& rank) {
  std::map<std::string, std::vector<std::byte>> out;
  for (const train::RankParameter& parameter : rank.parameters()) test::append(out[parameter.name], parameter.master);
  return out;
}

/// The first step that is not skipped gives the same result as the first step of a new run. So skipped steps change
/// neither weights nor optimizer state nor the number of steps.
TEST(LossScale, SkippedStepsLeaveEverythingAsItWas) {
  for (const char* optimizer : {"\"optim-adamw\"", "\"optim-sgd\""}) {
    SameSamples source;
    Fp16Run run("1073741824"); // 2^30
    run.keys["optimizer.plugin"] = optimizer;
    if (std::string(optimizer) == "\"optim-sgd\"") run.keys["optimizer.momentum"] = "0.9";
    TinyRank rank(run, {.training = &source});
    const auto before = weights_of(*rank);
    double scale = 0x1p30;
    train::StepResult result = rank->step();
    ASSERT_TRUE(result.skipped);
    for (; result.skipped; result = rank->step()) {
      EXPECT_EQ(result.loss_scale, scale);
      EXPECT_NEAR(result.loss, std::log(13.0), 0.05); // the forward passes are still valid
      EXPECT_FALSE(std::isfinite(result.grad_norm));
      EXPECT_EQ(weights_of(*rank), before);
      scale /= 2;
      ASSERT_GT(scale, 256);
    }
    EXPECT_EQ(result.loss_scale, scale);
    EXPECT_LT(scale, 0x1p24); // 24 tokens: with a larger scale even the loss gradient overflows
    EXPECT_NE(weights_of(*rank), before);

    run.keys["loss_scale.initial"] = text("{}", scale);
    TinyRank fresh(run, {.training = &source});
    for (int step = 0; step < 3; ++step) {
      const train::StepResult first = step == 0 ? fresh->step() : (result = rank->step(), fresh->step());
      EXPECT_FALSE(first.skipped);
      EXPECT_EQ(first.loss, result.loss);
      EXPECT_EQ(first.grad_norm, result.grad_norm);
      EXPECT_EQ(weights_of(*fresh), weights_of(*rank)) << optimizer << ", step " << step + 1;
    }
  }
}

/// Ordinary steps, of which some overflow with the current scale.
TEST(LossScale, FollowsItsWindowAndHysteresis) {
  Fp16Run run("1048576", "2");
  run.keys["loss_scale.window_steps"] = "3";
  TinyRank rank(run);
  double scale = 0x1p20;
  int taken = 0, put_up_with = 1, doubled = 0, halved = 0, kept = 0;
  for (int step = 1; step <= 20; ++step) {
    const train::StepResult result = rank->step();
    ASSERT_EQ(result.loss_scale, scale) << "step " << step;
    if (result.skipped) {
      taken = 0;
      (put_up_with > 0 ? kept : halved)++;
      if (put_up_with-- <= 0) scale /= 2;
    } else if (++taken == 3) {
      taken = 0;
      put_up_with = 1;
      scale *= 2;
      ++doubled;
    }
  }
  EXPECT_GT(doubled, 1);
  EXPECT_GT(halved, 1);
  EXPECT_GT(kept, 1);
}

TEST(LossScale, AConstantOneStaysAndEndsTheRunAfterManySkippedSteps) {
  Fp16Run run("1073741824");
  run.keys.erase("loss_scale.hysteresis");
  run.keys["loss_scale.constant"] = "true";
  TinyRank rank(run);
  const auto before = weights_of(*rank);
  for (int step = 1; step < executor::Executor::kMaxSkipped; ++step) {
    const train::StepResult result = rank->step();
    EXPECT_TRUE(result.skipped);
    EXPECT_EQ(result.loss_scale, 0x1p30);
  }
  try {
    rank->step();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("is not finite, in 20 steps one after another at the smallest loss scale"));
    EXPECT_EQ(error.where(), "step 20, NORM");
    EXPECT_EQ(error.hint(),
              "the weights are still those of step 19; use train.precision bf16 or fp32, a smaller "
              "optimizer.lr, or a smaller loss_scale.initial");
  }
  EXPECT_EQ(weights_of(*rank), before);
}

/// No loss scale can correct this.
TEST(LossScale, ALossThatIsNotFiniteIsAnErrorInFp16Too) {
  TinyRank rank(Fp16Run("1024"));
  rank->step();
  rank->parameter("head/norm.weight").master.as<float>()[3] = 1e6f; // infinite in f16
  rank->weights_changed();
  const auto before = weights_of(*rank);
  try {
    rank->step();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("the loss of sample 4 (microbatch 0 of data rank 0) is "));
    EXPECT_EQ(error.where(), "step 2, NORM");
  }
  EXPECT_EQ(weights_of(*rank), before);
}

TEST(LossScale, ASkippedStepIsSaidInTheLog) {
  class Lines final : public Log {
   public:
    bool enabled(LogLevel level) const noexcept override { return level >= LogLevel::info; }
    void write(LogLevel, std::string_view line) noexcept override { all.emplace_back(line); }
    std::vector<std::string> all;
  } lines;
  const Fp16Run run("1073741824");
  const config::RunConfig config = run.config();
  control::LocalStore store;
  test::TinySource source;
  train::Rank rank(config, Layout::ptd(1, 1, 1), 0, store, lines, {.training = &source});
  rank.step();
  ASSERT_FALSE(lines.all.empty());
  EXPECT_THAT(lines.all.back(),
              ::testing::MatchesRegex("step 1 is skipped: the gradient of .* is not finite at loss scale 1073741824; "
                                      "the next has 536870912"));
}

TEST(LossScale, TheCurveIsCloseToThatOfFp32) {
  Fp16Run run("65536");
  const test::Trace half = test::train(run, 60);
  run.keys["train.precision"] = "\"fp32\"";
  run.keys.erase("loss_scale.initial");
  run.keys.erase("loss_scale.hysteresis");
  const test::Trace full = test::train(run, 60);
  for (std::size_t step = 0; step < full.losses.size(); ++step)
    EXPECT_NEAR(half.losses[step], full.losses[step], 0.02 * full.losses[step]) << "step " << step + 1;
  const double last = std::accumulate(half.losses.end() - 10, half.losses.end(), 0.0) / 10;
  EXPECT_LT(last, 0.8 * half.losses.front());
}

// Several ranks.

using Weights = std::map<std::string, std::vector<std::byte>>;

struct RankSteps {
  std::vector<bool> skipped;
  std::vector<double> scales, losses;
  Weights before, after_first, after;
};

/// Samples with even numbers have one target token, those with odd numbers another. With two data ranks, rank 1 has the
/// odd ones.
class EvenAndOdd final : public executor::BatchSource {
 public:
  EvenAndOdd(std::int32_t even, std::int32_t odd) : even_(even), odd_(odd) {}
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    const std::int64_t micro = tokens.size(1);
    for (std::int64_t at = 0; at < tokens.elements(); ++at) {
      tokens.as<std::int32_t>()[at] = static_cast<std::int32_t>(at % 5);
      targets.as<std::int32_t>()[at] = samples[static_cast<std::size_t>(at % micro)] % 2 ? odd_ : even_;
    }
  }

 private:
  std::int32_t even_, odd_;
};

/// Makes the head predict one token for every input. Samples with this target have gradients near zero; others have the
/// largest possible ones.
void make_sure_of(train::Rank& rank, std::int64_t token) {
  for (const train::RankParameter& parameter : rank.parameters()) {
    const bool table = parameter.name == "embedding/tokens.weight", bias = parameter.name == "head/norm.bias";
    if (!table && !bias && parameter.name != "head/norm.weight") continue;
    auto* values = parameter.master.as<float>();
    std::fill_n(values, parameter.master.elements(), 0.0f);
    if (bias) values[0] = 30;
    if (!table) continue;
    const Cut* rows = parameter.spec->cut_along(0);
    const std::int64_t row = token - (rows ? rows->begin : 0);
    if (row >= 0 && row < parameter.master.size(0)) values[row * parameter.master.size(1)] = 1;
  }
  rank.weights_changed();
}

RankSteps two_steps(train::Rank& rank, std::int64_t sure_of) {
  RankSteps out;
  make_sure_of(rank, sure_of);
  out.before = weights_of(rank);
  for (int step = 0; step < 2; ++step) {
    const train::StepResult result = rank.step();
    out.skipped.push_back(result.skipped);
    out.scales.push_back(*result.loss_scale);
    out.losses.push_back(result.loss);
    if (step == 0) out.after_first = weights_of(rank);
  }
  out.after = weights_of(rank);
  return out;
}

std::vector<RankSteps> two_steps(const TinyRun& run, std::int32_t even, std::int32_t odd) {
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  control::LocalStore store;
  control::JobAbort abort;
  const control::JobAbort::Listening listening(abort, store);
  std::vector<RankSteps> out(static_cast<std::size_t>(layout.world_size()));
  std::vector<std::thread> threads;
  threads.reserve(out.size());
  for (int index = 0; index < layout.world_size(); ++index)
    threads.emplace_back([&, index] {
      try {
        EvenAndOdd source(even, odd);
        train::Rank rank(config, layout, index, store, null_log(),
                         {.training = &source, .threads = 1, .abort = &abort});
        try {
          out[static_cast<std::size_t>(index)] = two_steps(rank, even);
        } catch (const std::exception& error) {
          abort.raise(index, error.what()); // before the rank is destroyed, so that the others get the cause first
        }
      } catch (const std::exception& error) {
        abort.raise(index, error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(abort.reason(), "");
  return out;
}

TEST(LossScale, AnOverflowOnOneRankSkipsTheStepOnAll) {
  constexpr std::int32_t kEven = 7, kOdd = 8; // both on tensor rank 1
  Fp16Run run("4194304");                     // 2^22 / 48 tokens is above 65504, half of it is not
  run.keys["batch.global"] = "8";
  for (const char* axis : {"parallel.pipeline", "parallel.tensor", "parallel.data"}) run.keys[axis] = "2";
  run.keys["schedule.plugin"] = "\"sched-gpipe\"";

  // If data rank 1 has no other target, no rank overflows.
  for (const RankSteps& rank : two_steps(run, kEven, kEven)) EXPECT_THAT(rank.skipped, ElementsAre(false, false));

  const std::vector<RankSteps> ranks = two_steps(run, kEven, kOdd);
  const Layout layout = Layout::ptd(2, 2, 2);
  for (int index = 0; index < layout.world_size(); ++index) {
    SCOPED_TRACE(text("rank {}", index));
    const RankSteps& rank = ranks[static_cast<std::size_t>(index)];
    EXPECT_THAT(rank.skipped, ElementsAre(true, false));
    EXPECT_THAT(rank.scales, ElementsAre(0x1p22, 0x1p21));
    EXPECT_NEAR(rank.losses[0], 15, 0.1); // half of the samples have a loss of 30
    EXPECT_EQ(rank.losses, ranks.front().losses);
    EXPECT_EQ(rank.after_first, rank.before);
    EXPECT_NE(rank.after, rank.before);
    const int first[] = {layout.coordinate(index, "tensor"), 0, layout.coordinate(index, "pipeline")};
    EXPECT_EQ(rank.after, ranks[static_cast<std::size_t>(layout.rank_of(first))].after); // as on data rank 0
  }
}

using ResumedScale = test::ResumedRun;
using ::testing::IsEmpty;

TEST_F(ResumedScale, IsOneThatTheKeysAllow) {
  run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
  run_.keys["train.precision"] = "\"fp16\"";
  run_.keys["loss_scale.initial"] = "4.0";
  ASSERT_THAT(train({}, 2), IsEmpty());
  ASSERT_EQ(state("run", 2).loss_scale, 4);
  run_.keys["loss_scale.initial"] = "64.0";
  run_.keys["loss_scale.min"] = "16.0";
  ASSERT_THAT(train({}, 3), IsEmpty());
  EXPECT_EQ(state("run", 3).loss_scale, 16);
  run_.keys.erase("loss_scale.min");
  run_.keys["loss_scale.constant"] = "true";
  ASSERT_THAT(train({}, 4), IsEmpty());
  EXPECT_EQ(state("run", 4).loss_scale, 64);
}

} // namespace
} // namespace triax
