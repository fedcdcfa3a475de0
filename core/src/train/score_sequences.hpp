// SPDX-License-Identifier: Apache-2.0
// How probable the model finds the ends of sequences, on one rank of a run that generates.
//
// Threads: the rank's main thread. Ownership: borrows everything. Blocking: until all sequences have scores, or a
// signal. Errors: Error of a forward, or for logits that are not finite.
//
// Sequences of similar length are computed together: as many as the rank has samples, padded to the longest of them.
// Later tokens do not change a token's logits, so padding changes no score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "os/stop_signals.hpp"
#include "train/generating_rank.hpp"

namespace triax::train {

struct ScoredSequence {
  std::vector<std::int32_t> tokens;
  std::size_t first = 1; // token at which the scored end begins, at least 1: the first token has no probability
};

struct SequenceScore {
  std::size_t sequence = 0;  // its number
  double log_likelihood = 0; // of the end, in nats
  bool is_greedy = false;    // each of its tokens is the most probable one
};

struct ScoreJob {
  std::vector<ScoredSequence> sequences;
  /// Called in rank 0 with the scores of some sequences, until all have one.
  std::function<void(const std::vector<SequenceScore>& scores)> scored = {};
};

/// Returns the signal that ended it, or 0. All ranks must call it with the same sequences; `is_first`: rank 0.
int score_sequences(GeneratingRank& rank, const ScoreJob& job, const os::StopSignals& signals, bool is_first);

} // namespace triax::train
