// SPDX-License-Identifier: Apache-2.0
// Opens tokenizers by name, and names the files of a dataset.
//
// Blocking: opening a tokenizer and read_tokenizer_info() (dataset.hpp) do I/O. Errors: Error with the file or the
// flag, and the problem.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"

namespace triax::data {

/// Each byte of the text is a token; another token ends a document.
struct ByteTokenizer {
  static constexpr std::string_view kName = "byte";
  static constexpr std::int64_t kVocab = 257;
  static constexpr std::uint16_t kEndOfDocument = 256;
};

/// The folder of an imported checkpoint that has the files of the model's tokenizer.
inline constexpr const char* kImportedFolder = "hf";

/// The tokenizer that the flags select.
struct TokenizerChoice {
  std::string name;                    // "byte", "gpt2", or a tokenizer.json
  std::filesystem::path vocab, merges; // only for gpt2
};

/// Throws Error if the tokenizer does not exist or its files are invalid.
std::unique_ptr<Tokenizer> open_tokenizer(const TokenizerChoice& choice);
/// The tokenizer of a dataset, from the files next to it. Throws Error if these do not match.
std::unique_ptr<Tokenizer> open_tokenizer_of(const std::filesystem::path& prefix);

/// PREFIX plus an ending; a dot in the prefix is kept.
std::filesystem::path beside(const std::filesystem::path& prefix, std::string_view ending);
/// "prepare it with: triax data prepare ...", for errors about missing or invalid datasets. `checkpoint`: the one that
/// the run begins with, whose tokenizer the dataset needs.
std::string how_to_prepare(const std::filesystem::path& prefix, const std::filesystem::path& checkpoint = {});

/// PREFIX-tokenizer.json, the copy of a dataset's tokenizer.
std::filesystem::path tokenizer_file(const std::filesystem::path& prefix);

/// A tokenizer.json that gives the same ids. That of the byte tokenizer has no merges, and <|endoftext|> is the token
/// that ends a document.
std::string exported_json(const Tokenizer& tokenizer);

/// Contents of PREFIX.json for a dataset; `end`: the token that ends its documents, if any.
std::string dataset_info(const Tokenizer& tokenizer, std::optional<std::int32_t> end);

} // namespace triax::data
