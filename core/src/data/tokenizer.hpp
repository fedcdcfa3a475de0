// Tokenizers by name, and where the files of a dataset lie.
//
// Threads: any; pure. Ownership: values. Blocking: opening a tokenizer and read_tokenizer_info (dataset.hpp) do I/O.
// Errors: Error naming the file or the flag, and what is wrong with it.
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

/// Each byte of the text is a token; one more ends a document.
struct ByteTokenizer {
  static constexpr std::string_view kName = "byte";
  static constexpr std::int64_t kVocab = 257;
  static constexpr std::uint16_t kEndOfDocument = 256;
};

/// Which tokenizer, as flags name it.
struct TokenizerChoice {
  std::string name;                    // "byte", "gpt2", or a tokenizer.json
  std::filesystem::path vocab, merges; // of gpt2
};

/// Throws Error if there is no such tokenizer, or naming what is wrong with its files.
std::unique_ptr<Tokenizer> open_tokenizer(const TokenizerChoice& choice);
/// The one that a dataset was made with, from the files beside it; throws Error if they do not belong together.
std::unique_ptr<Tokenizer> open_tokenizer_of(const std::filesystem::path& prefix);

/// PREFIX and an ending; a dot in the prefix itself is kept.
std::filesystem::path beside(const std::filesystem::path& prefix, std::string_view ending);
/// "make it with: triax data prepare ...", for errors about files that are not there, or are no corpus.
std::string how_to_prepare(const std::filesystem::path& prefix);

/// PREFIX-tokenizer.json, the copy of a dataset's tokenizer.
std::filesystem::path tokenizer_file(const std::filesystem::path& prefix);

/// What PREFIX.json holds of a dataset whose documents end in `end`, if they do.
std::string dataset_info(const Tokenizer& tokenizer, std::optional<std::int32_t> end);

} // namespace triax::data
