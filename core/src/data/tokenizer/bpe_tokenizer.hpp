// Byte-level byte-pair encoding, as GPT-2 brought it: text is cut into words, the bytes of a word are merged in the
// order of the merges' ranks.
//
// Threads: read-only after making. Ownership: values. Blocking: never. Errors: Error from making, if parts do not fit
// together. Memory: an encoder keeps some megabytes of words that it has met.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/merge_table.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace triax::data {

struct BpeParts {
  std::vector<std::string> tokens; // by id, in symbols (byte_symbols.hpp); empty: an id without a token
  std::vector<Merge> merges;       // in the order of their ranks
  std::vector<AddedToken> added;
  std::vector<WordStep> steps;
  bool ignore_merges = false; // a word that is a token is that token, whatever merging would give
};

/// The id of each byte's own token, or -1.
std::vector<std::int32_t> byte_ids(const std::vector<std::string>& tokens);

/// `json` is what Tokenizer::json() gives back. Each byte must have a token of its own.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts, std::string json);

} // namespace triax::data
