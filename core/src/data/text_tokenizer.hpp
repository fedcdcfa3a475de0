// SPDX-License-Identifier: Apache-2.0
// The tokenizer of a model that generates: how prompts become tokens, and which tokens end a text.
//
// Threads: one per object. Blocking: opening does I/O. Errors: Error with the file, or of the prompt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"

namespace triax::data {

struct TextTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string from;               // what it was opened as, for messages: a flag or a file
  std::vector<std::int32_t> ends; // ids that end a text; the first separates documents
};

/// Without `ends`, the usual ones of the tokenizer: the byte tokenizer's end of a document, or <|endoftext|> if it has
/// this token.
TextTokenizer text_tokenizer(std::unique_ptr<Tokenizer> tokenizer, const std::string& from,
                             std::vector<std::int32_t> ends = {});
/// That of a dataset, from the files next to it. Throws Error if these do not match.
TextTokenizer text_tokenizer_of(const std::filesystem::path& prefix);

/// The tokens of a prompt. An empty one is the token that separates documents. Throws Error if the text cannot be
/// encoded.
std::vector<std::int32_t> encode_prompt(const TextTokenizer& tokenizer, std::string_view prompt);
/// Throws Error if the model has fewer positions than the prompt has tokens.
void check_prompt_length(const std::vector<std::int32_t>& prompt, std::int64_t positions);

} // namespace triax::data
