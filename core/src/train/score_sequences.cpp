// SPDX-License-Identifier: Apache-2.0
#include "train/score_sequences.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "train/nonfinite_logit.hpp"
#include "triax/element_type.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

constexpr std::int32_t kNoScore = std::numeric_limits<std::int32_t>::min(); // of ranks without logits
constexpr std::size_t kWords = 3;                                           // of a score that ranks agree on

/// A score as words of 32 bits: the maximum over all ranks is the score of those that have one.
void store_score(const SequenceScore& score, std::int32_t* words) {
  const auto bits = std::bit_cast<std::array<std::int32_t, 2>>(score.log_likelihood);
  std::ranges::copy(bits, words);
  words[2] = score.is_greedy ? 1 : 0;
}

SequenceScore stored_score(std::size_t sequence, const std::int32_t* words) {
  return {sequence, std::bit_cast<double>(std::array{words[0], words[1]}), words[2] == 1};
}

template <class Logit>
void add_token(const Logit* logits, std::int64_t vocab, std::int32_t token, DType compute, SequenceScore& score) {
  double largest = -std::numeric_limits<double>::infinity();
  std::int64_t best = 0;
  for (std::int64_t i = 0; i < vocab; ++i) {
    const auto logit = static_cast<double>(logits[i]);
    if (!std::isfinite(logit))
      throw Error(text("the logit of token {} is {}", i, nonfinite_text(nonfinite_kind(logit))), {},
                  nonfinite_hint(compute));
    if (logit <= largest) continue;
    largest = logit;
    best = i;
  }
  double sum = 0;
  for (std::int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  score.log_likelihood += static_cast<double>(logits[token]) - largest - std::log(sum);
  score.is_greedy = score.is_greedy && best == token;
}

class Scoring {
 public:
  Scoring(GeneratingRank& rank, const ScoreJob& job, const os::StopSignals& signals, bool is_first)
      : rank_(rank),
        job_(job),
        signals_(signals),
        is_first_(is_first),
        samples_(static_cast<std::size_t>(rank.state().microbatches())),
        order_(job.sequences.size()) {
    TRIAX_REQUIRE(rank.state().context().micro == 1, "sequences are microbatches of one sequence");
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) {
      return job.sequences[a].tokens.size() < job.sequences[b].tokens.size();
    });
    agreed_.resize(samples_ * kWords + 1); // and the request
    scores_.resize(samples_);
  }

  int run() {
    for (std::size_t at = 0; at < order_.size(); at += samples_) {
      batch_ = std::span(order_).subspan(at, std::min(samples_, order_.size() - at));
      append_batch();
      if (const int request = agree(); request != 0) return request;
      if (is_first_ && job_.scored) job_.scored({scores_.begin(), scores_.begin() + static_cast<long>(batch_.size())});
    }
    return 0;
  }

 private:
  const ScoredSequence& sequence(std::size_t sample) const { return job_.sequences[batch_[sample]]; }

  /// The last token is only a target.
  void append_batch() {
    if (rank_.generator().length() > 0) rank_.generator().restart();
    for (std::size_t sample = 0; sample < batch_.size(); ++sample) scores_[sample] = {batch_[sample], 0, true};
    // The number of targets of the longest sequence.
    const auto count = static_cast<std::int64_t>(sequence(batch_.size() - 1).tokens.size()) - 1;
    const std::int64_t most = rank_.state().context().max_rows;
    for (std::int64_t at = 0; at < count; at += most) append(at, std::min(most, count - at));
  }

  void append(std::int64_t at, std::int64_t rows) {
    if (RankActivity* const activity = RankActivity::current()) activity->make_progress();
    rows_.clear();
    for (std::int64_t row = at; row < at + rows; ++row)
      for (std::size_t sample = 0; sample < samples_; ++sample) {
        const auto index = static_cast<std::size_t>(row);
        const bool is_there = sample < batch_.size() && index < sequence(sample).tokens.size();
        rows_.push_back(is_there ? sequence(sample).tokens[index] : 0);
      }
    rank_.generator().append({rows_.data(), DType::i32, {rows, static_cast<std::int64_t>(samples_)}});
    rank_.set_position(rank_.generator().length());
    if (!rank_.state().makes_logits()) return;
    for (std::size_t sample = 0; sample < batch_.size(); ++sample) add_rows(sample, at, rows);
  }

  void add_rows(std::size_t sample, std::int64_t at, std::int64_t rows) {
    const ScoredSequence& of = sequence(sample);
    const TensorView logits = rank_.generator().logits(static_cast<int>(sample));
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto target = static_cast<std::size_t>(at + row + 1);
      if (target < of.first || target >= of.tokens.size()) continue;
      const TensorView of_row = logits.at(row).flat();
      with_type_among<float, double, Bf16, F16>(of_row.dtype(), [&]<class Logit>(Logit) {
        add_token(of_row.as<const Logit>(), of_row.elements(), of.tokens[target], rank_.state().context().compute,
                  scores_[sample]);
      });
    }
  }

  /// The last stage has the scores, with the same bits on all of its ranks. Returns the signal that ends the run.
  int agree() {
    std::ranges::fill(agreed_, kNoScore);
    agreed_.back() = signals_.caught();
    if (rank_.state().makes_logits())
      for (std::size_t sample = 0; sample < batch_.size(); ++sample)
        store_score(scores_[sample], &agreed_[sample * kWords]);
    constexpr auto kPart = static_cast<std::size_t>(GeneratingRank::kMaxAgreed);
    for (std::size_t at = 0; at < agreed_.size(); at += kPart)
      rank_.agree(std::span(agreed_).subspan(at, std::min(kPart, agreed_.size() - at)));
    for (std::size_t sample = 0; sample < batch_.size(); ++sample)
      scores_[sample] = stored_score(batch_[sample], &agreed_[sample * kWords]);
    return agreed_.back();
  }

  GeneratingRank& rank_;
  const ScoreJob& job_;
  const os::StopSignals& signals_;
  const bool is_first_;
  const std::size_t samples_;
  std::vector<std::size_t> order_; // numbers of the sequences, by length
  std::span<const std::size_t> batch_;
  std::vector<SequenceScore> scores_; // of the batch
  std::vector<std::int32_t> rows_;    // [rows, samples], of one append
  std::vector<std::int32_t> agreed_;
};

} // namespace

int score_sequences(GeneratingRank& rank, const ScoreJob& job, const os::StopSignals& signals, bool is_first) {
  return Scoring(rank, job, signals, is_first).run();
}

} // namespace triax::train
