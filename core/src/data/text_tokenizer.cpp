// SPDX-License-Identifier: Apache-2.0
#include "data/text_tokenizer.hpp"

#include <optional>
#include <utility>

#include "data/dataset.hpp"
#include "data/tokenizer/tokenizer_json.hpp"
#include "data/tokenizer_choice.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

std::vector<std::int32_t> usual_ends(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == ByteTokenizer::kName) return {ByteTokenizer::kEndOfDocument};
  const std::optional<std::int32_t> end = tokenizer.id_of(kEndOfText);
  return end ? std::vector{*end} : std::vector<std::int32_t>{};
}

} // namespace

TextTokenizer make_text_tokenizer(std::unique_ptr<Tokenizer> tokenizer, const std::string& from,
                                  std::vector<std::int32_t> ends) {
  if (ends.empty()) ends = usual_ends(*tokenizer);
  return {std::move(tokenizer), from, std::move(ends)};
}

TextTokenizer open_text_tokenizer_of(const std::filesystem::path& prefix) {
  const TokenizerInfo info = read_tokenizer_info(prefix);
  std::vector<std::int32_t> ends;
  if (info.end) ends.push_back(*info.end);
  return make_text_tokenizer(open_tokenizer_of(prefix), beside(prefix, ".json").string(), std::move(ends));
}

std::vector<std::int32_t> encode_prompt(const TextTokenizer& tokenizer, std::string_view prompt) {
  std::vector<std::int32_t> out;
  try {
    out = tokenizer.tokenizer->encode(prompt);
  } catch (const Error& error) {
    throw Error("the prompt cannot be encoded: " + error.message(), error.where(), error.hint());
  }
  if (out.empty() && !prompt.empty())
    throw Error("the prompt has no token: the tokenizer removes all of its text", {},
                "write other characters, or an empty prompt for the token that separates documents");
  if (out.empty() && !tokenizer.ends.empty()) out.push_back(tokenizer.ends.front());
  if (out.empty())
    throw Error("the prompt is empty, but the tokenizer has no token that separates documents", {},
                "write at least one character");
  return out;
}

void check_prompt_length(const std::vector<std::int32_t>& prompt, std::int64_t positions) {
  if (static_cast<std::int64_t>(prompt.size()) > positions)
    throw Error(text("the prompt has {} tokens, but the model has {} positions", prompt.size(), positions), {},
                "use a shorter prompt");
}

} // namespace triax::data
