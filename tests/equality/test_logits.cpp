// SPDX-License-Identifier: Apache-2.0
// Generating: the logits of a sequence do not depend on how its tokens are divided into calls, nor on the pipeline
// size, and give the loss of an evaluation.
#include <gtest/gtest.h>

#include "train/generating.hpp"

namespace triax {
namespace {

using test::Logits;
using test::TinyRun;

constexpr std::int64_t kSequence = 6, kVocab = 13;
constexpr test::TinyGenerator::Sizes kSizes{.microbatches = 2, .sequence = kSequence, .max_rows = kSequence};

struct Case {
  const char* kernels;
  const char* precision;
  /// Of logits of about 1. Other numbers of rows are other shapes, for which kernels-cpu adds a product in another
  /// order. 0: the reference adds each element of a product in the order of its terms, whatever the shape.
  double tolerance;
  double of_loss; // the mean of losses is added in another order
  const char* model = "model-gpt";
};

void set(TinyRun& run, const Case& of, int pipeline, int tensor) {
  run.keys["kernels.plugin"] = text("\"{}\"", of.kernels);
  run.keys["train.precision"] = text("\"{}\"", of.precision);
  run.keys["parallel.pipeline"] = std::to_string(pipeline);
  run.keys["parallel.tensor"] = std::to_string(tensor);
  run.keys["batch.micro"] = "2";
  if (std::string(of.model) == "model-llama") run.use_llama(2);
}

std::string name_of(const ::testing::TestParamInfo<Case>& of) {
  const std::string kernels = std::string(of.param.kernels).substr(8) + "_" + of.param.precision;
  return std::string(of.param.model) == "model-gpt" ? kernels : kernels + "_llama";
}

void expect_near(const Logits& logits, const Logits& expected, double tolerance) {
  ASSERT_EQ(logits.size(), expected.size());
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], tolerance) << "element " << i;
}

class Generating : public ::testing::TestWithParam<Case> {};

TEST_P(Generating, CallsDoNotChangeLogits) {
  for (const int tensor : {1, 2}) {
    Logits of_one_stage;
    for (const int pipeline : {1, 2}) {
      SCOPED_TRACE(text("pipeline {}, tensor {}", pipeline, tensor));
      TinyRun run;
      set(run, GetParam(), pipeline, tensor);
      const config::RunConfig config = run.config();
      const std::vector<test::RankTrace> trained = test::train_ranks(config, train::layout_of(config), 3);
      const Logits whole = test::generate(config, trained, {kSequence}, kSizes);
      ASSERT_EQ(whole.size(), static_cast<std::size_t>(4 * kSequence * kVocab));
      EXPECT_NEAR(test::loss_of(whole, kSequence, kVocab), trained.front().held_out, GetParam().of_loss);
      for (const std::vector<std::int64_t>& counts :
           {std::vector<std::int64_t>(kSequence, 1), std::vector<std::int64_t>{3, 1, 2},
            std::vector<std::int64_t>{5, 1}})
        expect_near(test::generate(config, trained, counts, kSizes), whole, GetParam().tolerance);
      EXPECT_EQ(test::generate(config, trained, {kSequence}, kSizes, true), whole) << "after other sequences";
      expect_near(test::generate(config, trained, std::vector<std::int64_t>(kSequence, 1), kSizes, true), whole,
                  GetParam().tolerance);
      if (pipeline == 1) of_one_stage = whole;
      EXPECT_EQ(whole, of_one_stage);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Generating,
                         ::testing::Values(Case{"kernels-reference", "fp32", 0, 1e-6},
                                           Case{"kernels-reference", "fp64", 0, 1e-12},
                                           Case{"kernels-cpu", "fp32", 2e-6, 1e-6},
                                           Case{"kernels-reference", "fp64", 0, 1e-12, "model-llama"},
                                           Case{"kernels-cpu", "fp32", 2e-6, 1e-6, "model-llama"}),
                         name_of);

} // namespace
} // namespace triax
