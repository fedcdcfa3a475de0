// SPDX-License-Identifier: Apache-2.0
#include "executor/token_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "triax/element_type.hpp"
#include "triax/error.hpp"
#include "triax/random.hpp"

namespace triax::executor {

namespace {

/// The purpose in the key of its random numbers. It is not in random.hpp, because no plugin samples tokens.
constexpr RandomPurpose kSampling{5};

template <class T>
void copy(const TensorView& from, std::span<double> to) {
  const T* const values = from.as<const T>();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<double>(static_cast<float>(values[i]));
}
template <>
void copy<double>(const TensorView& from, std::span<double> to) {
  std::copy_n(from.as<const double>(), to.size(), to.begin());
}

bool is_before(const TokenSampler::Candidate& a, const TokenSampler::Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

} // namespace

TokenSampler::TokenSampler(const SamplingOptions& options, std::int64_t vocab)
    : options_(options), vocab_(vocab), scores_(static_cast<std::size_t>(vocab)), is_penalized_(scores_.size()) {
  TRIAX_REQUIRE(vocab >= 1 && options.temperature >= 0 && options.top_k >= 0 && options.top_p >= 0 &&
                    options.min_p >= 0 && options.min_p <= 1 && options.repetition_penalty > 0,
                "sampling options out of range");
  sorted_.reserve(scores_.size());
  candidates_.reserve(scores_.size());
}

std::optional<std::int32_t> TokenSampler::choose(const TensorView& logits, std::span<const std::int32_t> sequence,
                                                 std::uint32_t sample) {
  if (!read_finite(logits)) return std::nullopt;
  if (options_.repetition_penalty != 1) penalize(sequence);
  const auto largest = std::ranges::max_element(scores_);
  const bool is_greedy = options_.temperature == 0 || !std::isfinite(*largest / options_.temperature);
  if (is_greedy) return static_cast<std::int32_t>(largest - scores_.begin());
  for (double& score : scores_) score /= options_.temperature;
  keep_top_k();
  weigh();
  if (options_.top_p < 1) keep_top_p();
  if (options_.min_p > 0) keep_min_p();
  return draw(sequence.size(), sample);
}

TokenSampler::NonfiniteLogit TokenSampler::nonfinite() const {
  const auto at = std::ranges::find_if(scores_, [](double score) { return !std::isfinite(score); });
  TRIAX_REQUIRE(at != scores_.end(), "all logits are finite");
  return {static_cast<std::int32_t>(at - scores_.begin()), *at};
}

bool TokenSampler::read_finite(const TensorView& logits) {
  TRIAX_REQUIRE(logits.rank() == 1 && logits.size(0) >= vocab_ && logits.contiguous(), "logits of {} tokens, got {}",
                vocab_, to_text(logits));
  with_type(logits.dtype(), [&]<class T>(T) { copy<T>(logits, scores_); });
  return std::ranges::all_of(scores_, [](double score) { return std::isfinite(score); });
}

/// Once for each token of the sequence (Keskar et al.: "CTRL", arXiv 1909.05858, section 4.1).
void TokenSampler::penalize(std::span<const std::int32_t> sequence) {
  for (const std::int32_t token : sequence) {
    if (token >= vocab_ || is_penalized_[static_cast<std::size_t>(token)]) continue;
    is_penalized_[static_cast<std::size_t>(token)] = true;
    double& score = scores_[static_cast<std::size_t>(token)];
    score = score < 0 ? score * options_.repetition_penalty : score / options_.repetition_penalty;
  }
  for (const std::int32_t token : sequence)
    if (token < vocab_) is_penalized_[static_cast<std::size_t>(token)] = false;
}

/// Tokens whose score equals the k-th largest stay (Fan et al.: "Hierarchical neural story generation", ACL 2018).
void TokenSampler::keep_top_k() {
  double least = -HUGE_VAL;
  if (options_.top_k > 0 && options_.top_k < vocab_) {
    sorted_.assign(scores_.begin(), scores_.end());
    const auto kth = sorted_.begin() + (options_.top_k - 1);
    std::ranges::nth_element(sorted_, kth, std::greater<>());
    least = *kth;
  }
  candidates_.clear();
  for (std::size_t token = 0; token < scores_.size(); ++token)
    if (scores_[token] >= least) candidates_.push_back({scores_[token], 0, static_cast<std::int32_t>(token)});
}

void TokenSampler::weigh() {
  const double largest = std::ranges::max_element(candidates_, {}, &Candidate::score)->score;
  for (Candidate& candidate : candidates_) candidate.weight = std::exp(candidate.score - largest);
}

/// The most probable tokens, until their probabilities add up to top_p (Holtzman et al.: "The curious case of neural
/// text degeneration", ICLR 2020).
void TokenSampler::keep_top_p() {
  double all = 0, kept = 0;
  for (const Candidate& candidate : candidates_) all += candidate.weight;
  const auto is_after = [](const Candidate& a, const Candidate& b) { return is_before(b, a); };
  std::ranges::make_heap(candidates_, is_after); // few of them stay: sorting all would take longer
  auto end = candidates_.end();
  do {
    std::ranges::pop_heap(candidates_.begin(), end, is_after);
    kept += (--end)->weight;
  } while (end != candidates_.begin() && kept < options_.top_p * all);
  candidates_.erase(candidates_.begin(), end);
}

/// Tokens with at least this fraction of the largest probability (Nguyen et al.: "Turning up the heat: min-p sampling",
/// arXiv 2407.01082).
void TokenSampler::keep_min_p() {
  const double largest = std::ranges::max_element(candidates_, {}, &Candidate::weight)->weight;
  std::erase_if(candidates_, [&](const Candidate& of) { return of.weight < options_.min_p * largest; });
}

std::int32_t TokenSampler::draw(std::uint64_t position, std::uint32_t sample) const {
  const PhiloxBlock words = philox_at(philox_key(options_.seed, kSampling), position * 4, 0, sample);
  // 53 random bits, as std::mt19937_64's users and numpy make a double of [0, 1).
  const double uniform =
      (static_cast<double>(words[0] >> 5) * 67108864 + static_cast<double>(words[1] >> 6)) / 9007199254740992;
  double all = 0;
  for (const Candidate& candidate : candidates_) all += candidate.weight;
  double below = 0;
  for (const Candidate& candidate : candidates_) {
    below += candidate.weight;
    if (uniform * all < below) return candidate.token;
  }
  return candidates_.back().token; // rounding
}

} // namespace triax::executor
