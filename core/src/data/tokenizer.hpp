// Tokenizers by name, and where the files of a dataset lie.
//
// Threads: any; pure. Ownership: values. Blocking: write_tokenizer_info and read_tokenizer_info (dataset.hpp) do I/O.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triax::data {

/// Each byte of the text is a token; one more ends a document.
struct ByteTokenizer {
  static constexpr std::string_view kName = "byte";
  static constexpr std::int64_t kVocab = 257;
  static constexpr std::uint16_t kEndOfDocument = 256;
};

std::vector<std::string> known_tokenizers();

/// PREFIX and an ending; a dot in the prefix itself is kept.
std::filesystem::path beside(const std::filesystem::path& prefix, std::string_view ending);
/// "make it with: triax data prepare ...", for errors about files that are not there.
std::string how_to_prepare(const std::filesystem::path& prefix);

/// What PREFIX.json holds for the byte tokenizer.
std::string tokenizer_json();

} // namespace triax::data
