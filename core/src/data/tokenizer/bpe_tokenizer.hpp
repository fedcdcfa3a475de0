// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding (BPE), as in GPT-2: text is cut into words, and the bytes of a word are merged in the
// order of the merges' ranks.
//
// Threads: read-only after construction. Errors: the constructor throws Error if the parts are inconsistent. Memory: an
// encoder caches words in some megabytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/merge_table.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace triax::data {

struct BpeParts {
  std::vector<std::string> tokens; // by id, as symbols (byte_symbols.hpp); empty: an unused id
  std::vector<Merge> merges;       // in the order of their ranks
  std::vector<AddedToken> added;
  std::vector<WordStep> steps;
  bool ignore_merges = false; // a word that is a token gets its id, without merging
  bool nfc = false;           // text between added tokens is put into NFC
};

/// The id of the token of each single byte, or -1.
std::vector<std::int32_t> byte_ids(const std::vector<std::string>& tokens);

/// `json` is returned by Tokenizer::json(). Each byte must have its own token.
std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts, std::string json);

} // namespace triax::data
