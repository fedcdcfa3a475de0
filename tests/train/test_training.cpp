// SPDX-License-Identifier: Apache-2.0
// Complete trainings of a tiny model: what the loss depends on, and what it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::TinyRank;
using test::TinyRun;
using test::Trace;
using ::testing::HasSubstr;

TEST(Training, TheLossFalls) {
  for (const char* optimizer : {"\"optim-adamw\"", "\"optim-sgd\""}) {
    TinyRun run;
    run.keys["optimizer.plugin"] = optimizer;
    run.keys["optimizer.lr"] = std::string(optimizer) == "\"optim-sgd\"" ? "0.3" : "1e-2";
    run.keys["model.dropout"] = "0.0";
    const Trace trace = test::train(run, 80);
    EXPECT_NEAR(trace.losses.front(), std::log(13.0), 0.05) << optimizer; // weights near zero give uniform predictions
    const double last = std::accumulate(trace.losses.end() - 10, trace.losses.end(), 0.0) / 10;
    EXPECT_LT(last, 0.7 * trace.losses.front()) << optimizer;
  }
}

TEST(Training, TwoRunsAreEqualAndSeedsAreNot) {
  TinyRun run;
  const Trace first = test::train(run, 5);
  EXPECT_EQ(test::train(run, 5), first);
  run.keys["train.seed"] = "2";
  EXPECT_NE(test::train(run, 5).losses, first.losses);
}

TEST(Training, ThreadsChangeNoBit) {
  TinyRun run;
  run.keys["kernels.plugin"] = "\"kernels-cpu\"";
  train::RankOptions one, three;
  one.threads = 1;
  three.threads = 3;
  EXPECT_EQ(test::train(run, 4, one), test::train(run, 4, three));
}

// Dropout depends on the sample number, so the microbatch size does not change it.
TEST(Training, TheMicrobatchSizeChangesRoundingOnly) {
  TinyRun run;
  run.keys["train.precision"] = "\"fp64\"";
  const Trace one = test::train(run, 5);
  for (const char* micro : {"2", "4"}) {
    run.keys["batch.micro"] = micro;
    const Trace other = test::train(run, 5);
    for (std::size_t step = 0; step < one.losses.size(); ++step) {
      EXPECT_NEAR(other.losses[step], one.losses[step], 1e-12) << micro;
      EXPECT_NEAR(other.norms[step], one.norms[step], 1e-12 * one.norms[step]) << micro;
    }
  }
}

TEST(Training, TheGlobalBatchIsTheMeanOverItsSamples) {
  TinyRun run;
  run.keys["model.dropout"] = "0.0";
  run.keys["train.precision"] = "\"fp64\"";
  const double four = test::train(run, 1).losses[0];
  run.keys["batch.global"] = "1";
  run.keys["optimizer.lr"] = "0.0"; // same weights for samples 0 to 3
  run.keys["lr.min"] = "0.0";
  const Trace single = test::train(run, 4);
  double sum = 0;
  for (const double loss : single.losses) sum += loss;
  EXPECT_NEAR(four, sum / 4, 1e-14);
}

TEST(Training, EvaluationDisturbsNothing) {
  TinyRun run;
  run.keys["eval.batches"] = "2";
  const Trace without = test::train(run, 4);
  TinyRank rank(run);
  Trace with;
  std::vector<double> held_out;
  for (int step = 0; step < 4; ++step) {
    const train::EvalResult first = rank->evaluate();
    EXPECT_EQ(first.loss, rank->evaluate().loss);
    EXPECT_EQ(first.tokens, 2 * 4 * 6);
    EXPECT_DOUBLE_EQ(first.perplexity, std::exp(first.loss));
    held_out.push_back(first.loss);
    const Trace one = test::train(*rank, 1);
    with.losses.push_back(one.losses[0]);
    with.norms.push_back(one.norms[0]);
    with.weights = one.weights;
    with.gradients = one.gradients;
  }
  EXPECT_EQ(with, without);
  EXPECT_NE(held_out.front(), held_out.back());
}

// Evaluation uses the samples of the first batches. Without dropout their loss equals that of the first step.
TEST(Training, EvaluationIsAForwardWithoutDropout) {
  TinyRun run;
  run.keys["model.dropout"] = "0.0";
  TinyRank plain(run);
  const double held_out = plain->evaluate().loss;
  EXPECT_EQ(held_out, plain->step().loss);

  run.keys["model.dropout"] = "0.5";
  TinyRank dropping(run);
  EXPECT_EQ(dropping->evaluate().loss, held_out);
  EXPECT_NE(dropping->step().loss, held_out);
}

TEST(Training, ClippingScalesTheGradientAndNothingElse) {
  TinyRun run;
  run.keys["optimizer.plugin"] = "\"optim-sgd\"";
  run.keys["optimizer.weight_decay"] = "0.0";
  run.keys["train.precision"] = "\"fp64\"";
  const auto moved = [&run](const char* clip) {
    run.keys["train.clip_grad"] = clip;
    TinyRank rank(run);
    const std::vector<train::RankParameter> parameters(rank->parameters().begin(), rank->parameters().end());
    std::vector<double> before, out;
    for (const auto& of : parameters)
      before.insert(before.end(), of.master.as<double>(), of.master.as<double>() + of.master.elements());
    const double norm = rank->step().grad_norm;
    double squares = 0;
    std::size_t at = 0;
    for (const auto& of : parameters)
      for (std::int64_t i = 0; i < of.master.elements(); ++i) {
        const double step = of.master.as<double>()[i] - before[at++];
        squares += step * step;
      }
    return std::pair{norm, std::sqrt(squares)};
  };
  const auto [norm, free] = moved("0.0");
  EXPECT_NEAR(free, 1e-2 * norm, 1e-8 * norm); // the kernel gets the learning rate as a float
  const auto [same_norm, loose] = moved("1000.0");
  EXPECT_EQ(loose, free);
  const auto [reported, clipped] = moved("0.05");
  EXPECT_EQ(reported, norm); // reported before clipping
  ASSERT_GT(norm, 0.1);
  EXPECT_NEAR(clipped, 1e-2 * 0.05 * norm / (norm + 1e-6), 1e-9);
  EXPECT_EQ(same_norm, norm);
}

TEST(Training, AWeightThatIsNotANumberStopsTheStepBeforeItWrites) {
  TinyRun run;
  TinyRank rank(run);
  rank->step();
  const train::RankParameter& poisoned = rank->parameter("head/norm.weight");
  poisoned.master.as<float>()[3] = std::nanf("");
  const auto bytes = [&rank] {
    std::vector<std::byte> out;
    for (const train::RankParameter& parameter : rank->parameters()) test::append(out, parameter.master);
    return out;
  };
  const std::vector<std::byte> before = bytes();
  try {
    rank->step();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "the loss of sample 4 (microbatch 0 of data rank 0) is not a number; first on rank 0: the output of head "
              "in microbatch 0 (1 of 1 values); head/norm.weight has 1 such value");
    EXPECT_EQ(error.where(), "step 2, NORM");
    EXPECT_THAT(error.hint(),
                HasSubstr("the weights are still those of step 1; use a smaller optimizer.lr (this step's is 0.01)"));
  }
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(rank->steps_done(), 1);
}

TEST(Training, AnOverflowByWeightDecayIsReportedWithItsKey) {
  TinyRun run;
  run.keys["optimizer.weight_decay"] = "1e30";
  TinyRank rank(run);
  try {
    for (int step = 0; step < 5; ++step) rank->step();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.hint(),
                HasSubstr("use a smaller optimizer.weight_decay (1e+30; multiplied by the learning rate it "
                          "is 1e+28, above 2), a smaller optimizer.lr (this step's is 0.01)"));
  }
}

// The loss is finite, but one gradient overflows a float: MLP activations without effect on the output (down is zero)
// times a gradient that the last norm makes large.
TEST(Training, AGradientThatIsInfiniteIsNamed) {
  TinyRank rank{TinyRun()};
  const auto set = [&rank](const char* name, float value) {
    const TensorView& master = rank->parameter(name).master;
    std::fill_n(master.as<float>(), master.elements(), value);
  };
  set("head/norm.weight", 1e37f);
  set("block 1/mlp.norm.weight", 1e6f);
  set("block 1/mlp.down.weight", 0);
  try {
    rank->step();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "the gradient of block 1/mlp.down.weight is not finite; first on rank 0: the gradient of block "
              "1/mlp.down.weight in microbatch 0 (240 of 256 values)");
    EXPECT_EQ(error.where(), "step 1, NORM");
  }
}

TEST(Training, SuggestsANameForAnUnknownParameter) {
  TinyRank rank{TinyRun()};
  try {
    rank->parameter("head/norm.weigth");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "no parameter \"head/norm.weigth\"\n  did you mean \"head/norm.weight\"?");
  }
}

/// Notes the first sample of each microbatch that it is asked for.
class NotingSource final : public test::TinySource {
 public:
  std::vector<std::int64_t> asked;
  void microbatch(std::span<const std::int64_t> samples, const TensorView& tokens, const TensorView& targets) override {
    asked.push_back(samples[0]);
    TinySource::microbatch(samples, tokens, targets);
  }
};

/// Each step ends with the samples of the next one read, but the last.
TEST(Training, TheSamplesOfTheNextStepAreReadAhead) {
  TinyRun run;
  run.keys["train.steps"] = "3";
  NotingSource source;
  train::RankOptions options;
  options.training = &source;
  TinyRank rank(run, options);
  std::vector<std::int64_t> expected(4); // of a step
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_THAT(source.asked, ::testing::IsEmpty());
  for (int step = 1; step <= 3; ++step) {
    rank->step();
    for (std::int64_t i = 0; i < 4 && step < 3; ++i) expected.push_back(4 * step + i);
    EXPECT_EQ(source.asked, expected) << "after step " << step;
  }
}

/// The first layer reads tokens, and the last one targets.
TEST(Training, APipelineRankWithoutTheseLayersReadsNoSamples) {
  TinyRun run;
  run.keys["parallel.pipeline"] = run.keys["model.layers"] = "3";
  const config::RunConfig config = run.config();
  std::vector<NotingSource> sources(3);
  test::run_ranks(config, train::layout_of(config), sources, [](train::Rank& rank, int) { rank.step(); });
  EXPECT_EQ(sources[0].asked.size(), 8u); // of two steps
  EXPECT_THAT(sources[1].asked, ::testing::IsEmpty());
  EXPECT_EQ(sources[2].asked, sources[0].asked);
}

TEST(Training, ReportsItsMemory) {
  TinyRank rank{TinyRun()};
  std::map<std::string, std::size_t> bytes;
  for (const train::MemoryRow& row : rank->memory()) bytes[row.what] = row.bytes;
  std::size_t weights = 0;
  for (const train::RankParameter& parameter : rank->parameters()) weights += Arena::aligned(parameter.master.bytes());
  EXPECT_EQ(bytes["weights"], weights);
  EXPECT_EQ(bytes["working weights"], 0u);
  const std::size_t table = 64 * 8 * 4, of_tokens = Arena::aligned(13 * 8 * 4); // 51 rows are padding
  EXPECT_EQ(bytes["gradients"], weights + table);                               // gradients of both sides of the tie
  EXPECT_EQ(bytes["optimizer state"], 2 * (weights - table + of_tokens));       // without padding rows
  EXPECT_GT(bytes["activations"], 0u);
  EXPECT_TRUE(rank->traffic().empty());
  EXPECT_EQ(rank->step().bubble_rate, 0);
}

} // namespace
} // namespace triax
