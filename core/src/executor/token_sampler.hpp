// SPDX-License-Identifier: Apache-2.0
// Chooses the next token of a sequence from its logits.
//
// The steps, their order and their meaning are those of the logits processors of transformers 5.24
// (src/transformers/generation/logits_process.py): RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper,
// TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper, each with min_tokens_to_keep = 1; then sampling from the
// softmax. Computed in f64, where transformers computes in f32.
//
// A sampled token depends on the seed, the number of the sample and the position of the token, and on nothing else: not
// on the layout, and not on other samples. All ranks that have the same logits choose the same token.
//
// Threads: one per object. Ownership: owns buffers of the size of the vocabulary; choose() does not allocate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "triax/tensor.hpp"

namespace triax::executor {

struct SamplingOptions {
  double temperature = 0;        // 0: the token with the largest logit, the first of equal ones
  std::int64_t top_k = 0;        // 0: off
  double top_p = 1;              // 1: off
  double min_p = 0;              // 0: off
  double repetition_penalty = 1; // 1: off
  std::uint64_t seed = 0;
};

class TokenSampler {
 public:
  /// `vocab`: ids below it can be chosen.
  TokenSampler(const SamplingOptions& options, std::int64_t vocab);

  /// `logits`: host memory [V], V >= vocab, in any type of computation. `sequence`: the tokens so far, for the
  /// repetition penalty. `sample`: its number. The position of the new token is sequence.size(). Empty if a logit is
  /// not finite.
  std::optional<std::int32_t> choose(const TensorView& logits, std::span<const std::int32_t> sequence,
                                     std::uint32_t sample);

  struct NonfiniteLogit {
    std::int32_t token = 0;
    double value = 0;
  };
  /// The first one of the last choose(), which was empty.
  NonfiniteLogit nonfinite() const;

  struct Candidate {
    double score = 0;  // the logit after the steps
    double weight = 0; // proportional to its probability
    std::int32_t token = 0;
  };
  /// The tokens that the steps of the last choose() with a temperature have left.
  std::span<const Candidate> candidates() const { return candidates_; }

 private:
  bool read_finite(const TensorView& logits);
  void penalize(std::span<const std::int32_t> sequence);
  void keep_top_k();
  void weigh();
  void keep_top_p();
  void keep_min_p();
  std::int32_t draw(std::uint64_t position, std::uint32_t sample) const;

  const SamplingOptions options_;
  const std::int64_t vocab_;
  std::vector<double> scores_, sorted_;
  std::vector<bool> is_penalized_;
  std::vector<Candidate> candidates_;
};

} // namespace triax::executor
