// SPDX-License-Identifier: Apache-2.0
// Tokenizer and end tokens of a model of transformers, from the files of its folder. An imported checkpoint has the
// same files in its folder `hf`.
//
// Blocking: reads the files. Errors: Error with the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"

namespace triax::hf {

struct ImportedTokenizer {
  std::unique_ptr<data::Tokenizer> tokenizer; // null: the folder has none that Triax reads
  std::string from;                           // its file
};

/// tokenizer.json; else, of a GPT-2, vocab.json and merges.txt. Models of other types split text by other patterns,
/// which these two files do not have.
ImportedTokenizer read_imported_tokenizer(const std::filesystem::path& folder);

/// Its flags of triax data prepare, with the token that ends a document: <|endoftext|>, else the model's end token.
/// `imported` must have a tokenizer.
std::string prepare_flags(const ImportedTokenizer& imported);

/// eos_token_id of generation_config.json; without this file, that of config.json, as transformers does. Empty: the
/// model has none. Throws Error for an id that is not in the model's vocabulary of `vocab` tokens.
std::vector<std::int32_t> read_end_tokens(const std::filesystem::path& folder, std::int64_t vocab);

} // namespace triax::hf
