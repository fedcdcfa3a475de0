// SPDX-License-Identifier: Apache-2.0
// Reads and writes tokenizer.json, the file format of Hugging Face's `tokenizers`, for tokenizers of the GPT-2 family;
// also reads GPT-2's own vocab.json and merges.txt.
//
// Blocking: reads files. Errors: Error with the file, the path in its JSON or the line, and the supported values.
// Nothing in a file that affects the ids is ignored.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/tokenizer/bpe_tokenizer.hpp"

namespace triax::data {

/// Ids are those of encode(text, add_special_tokens=False): a post_processor's tokens are not added.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& file);
/// That of a text; `file`: what it is from, for errors.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string json, const std::filesystem::path& file);
/// If the vocabulary has <|endoftext|>, it is an added token, as in transformers' GPT2Tokenizer.
std::unique_ptr<Tokenizer> read_gpt2_files(const std::filesystem::path& vocab, const std::filesystem::path& merges);

/// For a tokenizer whose only step is GPT-2's pattern.
std::string write_tokenizer_json(const BpeParts& parts);

inline constexpr const char* kEndOfText = "<|endoftext|>";

} // namespace triax::data
