// SPDX-License-Identifier: Apache-2.0
// Tensor size, data size and microbatch size change only the order of sums: losses, norms, gradients and weights agree
// with those of one rank up to fp32 rounding. The allowed difference is measured: the distance of the one-rank run from
// the same run in double on kernels-reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <span>
#include <string>

#include "equality/merged_model.hpp"
#include "triax/text.hpp"

namespace triax::equality {
namespace {

using Ranks = std::vector<KeptRank>;

/// The same samples and layers, one microbatch per sample, on one rank.
Case on_one_rank(const Case& run) {
  Case out{1, 1, 1, 1, "sched-gpipe", 1, run.samples(), run.kernels, run.layers};
  out.sequence = run.sequence;
  return out;
}

double relative(double one, double other) {
  return std::abs(one - other) / std::abs(other);
}

struct Subject {
  std::string kernels, model;
};

void PrintTo(const Subject& of, std::ostream* out) {
  *out << of.kernels << ", " << of.model;
}

class Rounding : public testing::TestWithParam<Subject> {
 protected:
  Rounding() : cases_(rounding_cases(GetParam().kernels)), one_rank_(on_one_rank(cases_.front())) {
    for (const Case& run : cases_) EXPECT_EQ(to_text(on_one_rank(run)), to_text(one_rank_)) << to_text(run);
  }
  std::vector<Case> cases_;
  Case one_rank_;
};

// The first step has one forward and one backward, so differences have not grown.

void expect_same_first_step(const Ranks& ranks, const Ranks& one, const std::string& model) {
  EXPECT_LE(relative(ranks[0].losses[0], one[0].losses[0]), 1e-6);
  EXPECT_LE(relative(ranks[0].norms[0], one[0].norms[0]), 1e-6);
  MergedModel gradient = merged_gradient(ranks), expected = merged_gradient(one);
  split_qkv(gradient, model);
  split_qkv(expected, model);
  ASSERT_EQ(gradient.size(), expected.size());
  double most = 0;
  for (const auto& [name, values] : expected) most = std::max(most, largest(values));
  for (const auto& [name, values] : gradient) {
    if (is_key_bias(name, model)) {
      EXPECT_LE(largest(values), 1e-7 * most) << name;
      continue;
    }
    EXPECT_GT(largest(values), 0) << name;
    EXPECT_LE(distance(values, expected.at(name)), 1e-5) << "gradient of " << name;
  }
}

TEST_P(Rounding, FirstStep) {
  const Training training{.model = GetParam().model, .steps = 1};
  const Ranks one = train(one_rank_, training);
  for (const Case& run : cases_) {
    SCOPED_TRACE(to_text(run));
    expect_same_first_step(train(run, training), one, training.model);
    if (HasFailure()) break; // the other cases would fail too
  }
}

// Ten steps with each optimizer, because Adam hides the scale of a gradient.

void expect_falling(const Ranks& exact) {
  for (std::size_t step = 1; step < exact[0].losses.size(); ++step)
    EXPECT_LT(exact[0].losses[step], exact[0].losses[step - 1]) << "loss of step " << step + 1 << ", in double";
}

/// fp32 stays near double: both kernel sets compute the same model.
void expect_rounding_only(const Ranks& one, const Ranks& exact) {
  for (std::size_t step = 0; step < one[0].losses.size(); ++step) {
    EXPECT_LE(relative(one[0].losses[step], exact[0].losses[step]), 1e-6) << "loss of step " << step + 1;
    EXPECT_LE(relative(one[0].norms[step], exact[0].norms[step]), 1e-5) << "grad_norm of step " << step + 1;
  }
}

/// The distance of `one` from `exact` sets the tolerance.
void expect_close_numbers(const std::vector<double>& run, const std::vector<double>& one,
                          const std::vector<double>& exact, const char* what) {
  ASSERT_EQ(run.size(), one.size());
  for (std::size_t step = 0; step < run.size(); ++step)
    EXPECT_LE(relative(run[step], one[step]), std::max(1e-6, 4 * relative(one[step], exact[step])))
        << what << " of step " << step + 1 << text(": {}, and {} on one rank", run[step], one[step]);
}

/// Adam divides rounding errors of the keys' biases by their own size, so these weights may differ by `farthest`.
void expect_close_weights(const Ranks& ranks, const Ranks& one, const std::string& model, double farthest) {
  MergedModel weights = merged_weights(ranks), expected = merged_weights(one);
  split_qkv(weights, model);
  split_qkv(expected, model);
  ASSERT_EQ(weights.size(), expected.size());
  for (const auto& [name, values] : weights) {
    if (is_key_bias(name, model)) {
      EXPECT_LE(largest(values), farthest) << "weights of " << name;
      continue;
    }
    EXPECT_LE(distance(values, expected.at(name)), 1e-4) << "weights of " << name;
  }
}

void expect_close_steps(const std::vector<Case>& cases, const Case& one_rank, const Training& training) {
  const Ranks one = train(one_rank, training);
  Case in_double = one_rank;
  in_double.kernels = "kernels-reference";
  Training exactly = training;
  exactly.precision = "fp64";
  const Ranks exact = train(in_double, exactly);
  expect_falling(exact);
  expect_rounding_only(one, exact);
  constexpr std::size_t kSample = 4;
  for (const Case& run : std::span(cases).first(all_asked() ? cases.size() : kSample)) {
    SCOPED_TRACE(to_text(run));
    const Ranks ranks = train(run, training);
    expect_close_numbers(ranks[0].losses, one[0].losses, exact[0].losses, "loss");
    expect_close_numbers(ranks[0].norms, one[0].norms, exact[0].norms, "grad_norm");
    expect_close_numbers({ranks[0].held_out}, {one[0].held_out}, {exact[0].held_out}, "loss on held-out samples");
    expect_close_weights(ranks, one, training.model, training.lr * training.steps);
    if (testing::Test::HasFailure()) break;
  }
}

TEST_P(Rounding, TenStepsOfAdamW) {
  expect_close_steps(
      cases_, one_rank_,
      {.model = GetParam().model, .optimizer = "optim-adamw", .lr = 1e-3, .steps = 10, .same_samples = true});
}

TEST_P(Rounding, TenStepsOfSgd) {
  expect_close_steps(
      cases_, one_rank_,
      {.model = GetParam().model, .optimizer = "optim-sgd", .lr = 1e-2, .steps = 10, .same_samples = true});
}

INSTANTIATE_TEST_SUITE_P(With, Rounding,
                         testing::Values(Subject{"kernels-reference", "model-gpt"}, Subject{"kernels-cpu", "model-gpt"},
                                         Subject{"kernels-reference", "model-llama"},
                                         Subject{"kernels-cpu", "model-llama"}),
                         [](const auto& of) {
                           const std::string kernels = of.param.kernels == "kernels-cpu" ? "cpu" : "reference";
                           return of.param.model == "model-gpt" ? kernels : kernels + "_llama";
                         });

/// Its loops are those of no kernel set, so one subject is enough. Its steps are small: dropout would hide that the
/// loss falls.
TEST(RoundingOfTrustRatios, TenStepsOfLamb) {
  const std::vector<Case> cases = rounding_cases("kernels-cpu");
  expect_close_steps(cases, on_one_rank(cases.front()),
                     {.optimizer = "optim-lamb", .lr = 1e-3, .dropout = 0, .steps = 10, .same_samples = true});
}

/// Its products are those of the kernel set. Its update is as large as that of AdamW, and does not shrink with the
/// gradient.
TEST(RoundingOfMatrices, TenStepsOfMuon) {
  for (const char* model : {"model-gpt", "model-llama"}) {
    SCOPED_TRACE(model);
    const std::vector<Case> cases = rounding_cases("kernels-cpu");
    expect_close_steps(
        cases, on_one_rank(cases.front()),
        {.model = model, .optimizer = "optim-muon", .lr = 1e-3, .dropout = 0, .steps = 10, .same_samples = true});
  }
}

class Rounding16 : public testing::TestWithParam<const char*> {}; // of each model

/// In 16 bits the order of sums changes the last bit of some results. The allowed difference is measured: the distance
/// of the one-rank run from the one in fp32, which may be at most `most`.
void expect_rounding_of(const std::string& precision, double most, const std::string& model) {
  const Training fp32{.model = model, .lr = 1e-3, .steps = 10, .same_samples = true};
  Training half = fp32;
  half.precision = precision;
  const std::vector<Case> cases = rounding_cases("kernels-cpu");
  const Case one_rank = on_one_rank(cases.front());
  const std::vector<double> exact = train(one_rank, fp32)[0].losses, one = train(one_rank, half)[0].losses;
  for (std::size_t step = 0; step < exact.size(); ++step) {
    EXPECT_NE(one[step], exact[step]) << "step " << step + 1;
    EXPECT_LE(relative(one[step], exact[step]), most) << "loss of step " << step + 1;
  }
  constexpr std::size_t kOfLlama = 2; // tensor, pipeline and data ranks
  const bool all = all_asked() || model == "model-gpt";
  for (const Case& run : std::span(cases).first(all ? cases.size() : kOfLlama)) {
    SCOPED_TRACE(to_text(run));
    const KeptRank rank = train(run, half)[0];
    for (std::size_t step = 0; step < rank.losses.size(); ++step) {
      EXPECT_LE(relative(rank.losses[step], one[step]), std::max(most / 2, 4 * relative(one[step], exact[step])))
          << "loss of step " << step + 1;
      EXPECT_FALSE(rank.skipped[step]) << "step " << step + 1;
    }
  }
}

TEST_P(Rounding16, OfBf16) {
  expect_rounding_of("bf16", 2e-3, GetParam());
}

/// With three more mantissa bits than bf16, and the default loss scale.
TEST_P(Rounding16, OfFp16) {
  expect_rounding_of("fp16", 2.5e-4, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Of, Rounding16, testing::Values("model-gpt", "model-llama"),
                         [](const auto& of) { return std::string(of.param).substr(6); });

// An error that all layouts share, such as a lost side of the tied table or a gradient of half its size, shows here.

/// A step of length lr against the gradient g reduces the loss by lr |g|^2.
TEST(Gradient, IsTheSlopeOfTheLoss) {
  Training training{.optimizer = "optim-sgd",
                    .lr = 1e-6,
                    .dropout = 0,
                    .weight_decay = 0,
                    .precision = "fp64",
                    .steps = 2,
                    .same_samples = true};
  for (const Case& run : {Case{1, 1, 1, 1, "sched-gpipe", 1, 8}, Case{2, 2, 2, 1, "sched-1f1b", 1, 4},
                          Case{2, 1, 2, 2, "sched-interleaved", 2, 2}}) {
    for (const char* model : {"model-gpt", "model-llama"}) {
      training.model = model;
      const KeptRank rank = train(run, training).front();
      const double taken = rank.losses[0] - rank.losses[1];
      EXPECT_LE(relative(taken, training.lr * rank.norms[0] * rank.norms[0]), 1e-3) << model << ", " << to_text(run);
    }
  }
}

} // namespace
} // namespace triax::equality
