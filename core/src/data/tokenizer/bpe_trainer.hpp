// Makes a byte-level BPE tokenizer from text: the pair of neighbours that is met most often becomes a token, again and
// again. Gives what Hugging Face's BpeTrainer gives: of pairs met equally often, the one of smaller ids goes first.
//
// Threads: one. Ownership: values. Blocking: computes. Memory: grows with the number of different words. Errors: what
// `progress` throws.
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
  std::int64_t vocab = 0;                  // tokens at most, special ones and the 256 bytes among them
  std::int64_t min_count = 2;              // a pair met less often becomes no token
  std::vector<std::string> special_tokens; // the first ids
};

/// `progress` gets the number of tokens; it may throw.
BpeParts train_bpe(const WordCounts& words, const BpeTraining& training,
                   const std::function<void(std::int64_t tokens)>& progress);

} // namespace triax::data
