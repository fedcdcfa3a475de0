// SPDX-License-Identifier: Apache-2.0
// Choosing tokens: each step against its formula and against transformers (scripts/make-generate-reference.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "executor/token_sampler.hpp"
#include "triax/half.hpp"

namespace triax::executor {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr double kTolerance = 1e-5; // transformers computes in f32

template <class T>
TensorView view(std::vector<T>& values, DType type = DType::f32) {
  return {values.data(), type, {static_cast<std::int64_t>(values.size())}};
}

/// The tokens that the steps leave, with their probabilities.
std::map<std::int32_t, double> left(const SamplingOptions& options, std::vector<float> logits,
                                    const Tokens& sequence = {}) {
  TokenSampler sampler(options, static_cast<std::int64_t>(logits.size()));
  sampler.choose(view(logits), sequence, 0);
  double all = 0;
  for (const TokenSampler::Candidate& one : sampler.candidates()) all += one.weight;
  std::map<std::int32_t, double> out;
  for (const TokenSampler::Candidate& one : sampler.candidates()) out[one.token] = one.weight / all;
  return out;
}

std::optional<std::int32_t> chosen(const SamplingOptions& options, std::vector<float> logits,
                                   const Tokens& sequence = {}, std::uint32_t sample = 0) {
  TokenSampler sampler(options, static_cast<std::int64_t>(logits.size()));
  return sampler.choose(view(logits), sequence, sample);
}

/// Logits with these probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

TEST(TokenSampler, GreedyTakesTheFirstOfTheLargest) {
  EXPECT_EQ(chosen({}, {1, 5, -2, 5}), 1);
  EXPECT_EQ(chosen({}, {-3}), 0);
}

/// Its quotients are infinite.
TEST(TokenSampler, ATemperatureNearZeroIsGreedy) {
  for (const double temperature : {5e-324, 3e-308, 1e-300}) {
    EXPECT_EQ(chosen({.temperature = temperature}, {10, 5, -2, 1}), 0) << temperature;
    EXPECT_EQ(chosen({.temperature = temperature}, {-10, -5, -20}), 1) << temperature;
    EXPECT_EQ(chosen({.temperature = temperature}, {0, -5, -20}), 0) << temperature;
  }
}

TEST(TokenSampler, LogitsHaveTheTypeOfTheComputation) {
  std::vector<double> wide = {1, 1 + 1e-15, 1};
  std::vector<Bf16> bf16 = {Bf16(1.0f), Bf16(-4.0f), Bf16(3.0f)};
  std::vector<F16> f16 = {F16(-1.0f), F16(2.5f), F16(2.0f)};
  TokenSampler sampler({}, 3);
  EXPECT_EQ(sampler.choose(view(wide, DType::f64), {}, 0), 1);
  EXPECT_EQ(sampler.choose(view(bf16, DType::bf16), {}, 0), 2);
  EXPECT_EQ(sampler.choose(view(f16, DType::f16), {}, 0), 1);
}

/// A model may have more tokens than its tokenizer.
TEST(TokenSampler, TokensBeyondTheVocabularyAreNotChosen) {
  std::vector<float> logits = {1, 2, 9};
  EXPECT_EQ(TokenSampler({}, 2).choose(view(logits), Tokens{2, 2}, 0), 1);
}

TEST(TokenSampler, AppliesTheRepetitionPenaltyOnce) {
  const SamplingOptions options{.repetition_penalty = 2};
  EXPECT_EQ(chosen(options, {4, 3, -1}, {0, 0, 0}), 1);   // 2, 3, -1
  EXPECT_EQ(chosen(options, {4, 1.5, -1}, {0, 0, 0}), 0); // 2, 1.5, -1
  EXPECT_EQ(chosen(options, {-3, -2, -5}, {1, 1}), 0);    // -3, -4, -5
}

TEST(TokenSampler, TemperatureDividesTheLogits) {
  const auto found = left({.temperature = 2}, {2, 0});
  EXPECT_NEAR(found.at(0), std::exp(1.0) / (std::exp(1.0) + 1), 1e-12);
}

TEST(TokenSampler, TopKKeepsEqualOnes) {
  EXPECT_THAT(left({.temperature = 1, .top_k = 2}, {1, 3, 2, 2, 0}), ::testing::SizeIs(3));
  EXPECT_THAT(left({.temperature = 1, .top_k = 9}, {1, 3, 2}), ::testing::SizeIs(3));
}

TEST(TokenSampler, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits = logits_of({0.1, 0.5, 0.15, 0.25});
  const auto found = left({.temperature = 1, .top_p = 0.7}, logits);
  ASSERT_THAT(found, ::testing::SizeIs(2));
  EXPECT_NEAR(found.at(1), 0.5 / 0.75, 1e-6);
  EXPECT_NEAR(found.at(3), 0.25 / 0.75, 1e-6);
  EXPECT_THAT(left({.temperature = 1, .top_p = 0.8}, logits), ::testing::SizeIs(3));
  EXPECT_THAT(left({.temperature = 1, .top_p = 0}, logits), ::testing::SizeIs(1));
}

TEST(TokenSampler, MinPIsAFractionOfTheLargest) {
  const std::vector<float> logits = logits_of({0.1, 0.5, 0.15, 0.25});
  EXPECT_THAT(left({.temperature = 1, .min_p = 0.4}, logits), ::testing::SizeIs(2));
  EXPECT_THAT(left({.temperature = 1, .min_p = 0.25}, logits), ::testing::SizeIs(3));
  EXPECT_THAT(left({.temperature = 1, .min_p = 1}, logits), ::testing::SizeIs(1));
}

TEST(TokenSampler, LeavesWhatTransformersLeaves) {
  const nlohmann::json json = nlohmann::json::parse(std::ifstream(REFERENCE "/sampling.json"));
  ASSERT_GE(json["cases"].size(), 10U);
  for (const nlohmann::json& of : json["cases"]) {
    const nlohmann::json& settings = of["settings"];
    const SamplingOptions options{.temperature = settings["temperature"],
                                  .top_k = settings.value("top_k", std::int64_t{0}),
                                  .top_p = settings.value("top_p", 1.0),
                                  .min_p = settings.value("min_p", 0.0),
                                  .repetition_penalty = settings.value("repetition_penalty", 1.0)};
    const auto found = left(options, of["logits"].get<std::vector<float>>(), of["sequence"].get<Tokens>());
    EXPECT_EQ(found.size(), of["probabilities"].size()) << settings;
    for (const auto& [token, probability] : of["probabilities"].items()) {
      ASSERT_TRUE(found.contains(std::stoi(token))) << settings << " leaves out " << token;
      EXPECT_NEAR(found.at(std::stoi(token)), probability.get<double>(), kTolerance) << settings << ", token " << token;
    }
  }
}

/// 20000 draws of each of two samples: the standard deviation of a share of 0.5 is 0.0035.
TEST(TokenSampler, DrawsHaveTheProbabilities) {
  std::vector<float> logits = logits_of({0.5, 0.3, 0.2});
  constexpr int kDraws = 20'000;
  for (const std::uint32_t sample : {0u, 1u}) {
    TokenSampler sampler({.temperature = 1, .seed = 3}, 3);
    std::vector<double> counts(3);
    Tokens sequence;
    for (int i = 0; i < kDraws; ++i) {
      sequence.push_back(0);
      counts[static_cast<std::size_t>(sampler.choose(view(logits), sequence, sample).value())] += 1;
    }
    EXPECT_NEAR(counts[0] / kDraws, 0.5, 0.02);
    EXPECT_NEAR(counts[1] / kDraws, 0.3, 0.02);
    EXPECT_NEAR(counts[2] / kDraws, 0.2, 0.02);
  }
}

/// Seed, sample and position decide, and nothing that was drawn before.
TEST(TokenSampler, ADrawDependsOnSeedSampleAndPosition) {
  std::vector<float> logits(1000, 0);
  const auto draw = [&](std::uint64_t seed, std::uint32_t sample, std::size_t position) {
    return chosen({.temperature = 1, .seed = seed}, logits, Tokens(position, 7), sample);
  };
  const auto one = draw(1, 2, 3);
  TokenSampler sampler({.temperature = 1, .seed = 1}, 1000);
  sampler.choose(view(logits), Tokens(9, 7), 5);
  EXPECT_EQ(sampler.choose(view(logits), Tokens(3, 1), 2), one);
  EXPECT_NE(draw(2, 2, 3), one);
  EXPECT_NE(draw(1, 3, 3), one);
  EXPECT_NE(draw(1, 2, 4), one);
}

TEST(TokenSampler, ChoosesNothingIfALogitIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0})
    for (const float value : {std::nanf(""), kInfinity, -kInfinity})
      for (const std::int32_t token : {0, 2}) {
        TokenSampler sampler({.temperature = temperature}, 3);
        std::vector<float> logits{1, 2, 3};
        logits[static_cast<std::size_t>(token)] = value;
        EXPECT_FALSE(sampler.choose(view(logits), {}, 0));
        EXPECT_EQ(sampler.nonfinite().token, token);
        EXPECT_EQ(std::isnan(sampler.nonfinite().value), std::isnan(value));
        if (!std::isnan(value)) {
          EXPECT_EQ(sampler.nonfinite().value, value);
        }
      }
  std::vector<F16> half{F16(1.0F), F16(1e5F)}; // above its range
  EXPECT_FALSE(TokenSampler({}, 2).choose(view(half, DType::f16), {}, 0));
}

} // namespace
} // namespace triax::executor
