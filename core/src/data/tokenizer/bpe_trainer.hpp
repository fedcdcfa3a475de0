// SPDX-License-Identifier: Apache-2.0
// Trains a byte-level BPE tokenizer: the most frequent pair of neighbours becomes a token, repeatedly. Gives the same
// result as Hugging Face's BpeTrainer: of equally frequent pairs, the one with smaller ids is first.
//
// Blocking: computes. Memory: grows with the number of distinct words. Errors: those of `progress`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/bpe_tokenizer.hpp"
#include "triax/error.hpp"

namespace triax::data {

using WordCounts = std::unordered_map<std::string, std::int64_t>;

struct BpeTraining {
  std::int64_t vocab = 0;                  // maximum number of tokens, including special tokens and the 256 bytes
  std::int64_t min_count = 2;              // a less frequent pair does not become a token
  std::vector<std::string> special_tokens; // they get the first ids
};

/// `progress` is called with the number of tokens; it may throw.
BpeParts train_bpe(const WordCounts& words, const BpeTraining& training,
                   const std::function<void(std::int64_t tokens)>& progress);

} // namespace triax::data
