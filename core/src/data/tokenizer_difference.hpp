// SPDX-License-Identifier: Apache-2.0
// Compares the tokenizers of token files and of models.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "data/dataset.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace triax::data {

TokenizerInfo info_of(const Tokenizer& tokenizer);

/// Whether both give the same ids. The byte tokenizer and its tokenizer.json (exported_json()) do.
bool gives_same_ids(const TokenizerInfo& a, const TokenizerInfo& b);

/// "A and B have different tokenizers: byte of 257 ids (byte), and bpe of 1000 ids (0c1f...)"
std::string different_tokenizers(const std::string& first, const TokenizerInfo& a, const std::string& second,
                                 const TokenizerInfo& b);

} // namespace triax::data
