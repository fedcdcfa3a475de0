// tokenizer.json, the file of Hugging Face's `tokenizers`: read and written, of the family that GPT-2 began; and
// GPT-2's own vocab.json and merges.txt.
//
// Threads: any. Ownership: values. Blocking: reads files. Errors: Error naming the file, the path in its JSON or the
// line, and what is taken: nothing in a file that changes what text becomes is passed over.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "data/tokenizer/bpe_tokenizer.hpp"

namespace triax::data {

/// Ids are those of encode(text, add_special_tokens=False): what a post_processor adds is not added.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& file);
/// <|endoftext|>, if the vocabulary has it, is found in the text as in transformers' GPT2Tokenizer.
std::unique_ptr<Tokenizer> read_gpt2_files(const std::filesystem::path& vocab, const std::filesystem::path& merges);

/// Of a tokenizer whose only step is GPT-2's pattern.
std::string write_tokenizer_json(const BpeParts& parts);

inline constexpr const char* kEndOfText = "<|endoftext|>";

} // namespace triax::data
