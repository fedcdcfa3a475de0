// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/added_tokens.hpp"

#include <algorithm>

namespace triax::data {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) {
    const auto first = static_cast<unsigned char>(token.content.front());
    starts_[first] = true;
    by_first_byte_[first].push_back(std::move(token));
  }
  for (std::vector<AddedToken>& of : by_first_byte_) {
    std::ranges::stable_sort(of, std::ranges::greater(), [](const AddedToken& token) { return token.content.size(); });
  }
}

FoundToken AddedTokens::find(std::string_view text, std::size_t from, bool closed) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (!starts_[first]) continue;
    const std::string_view rest = text.substr(at);
    for (const AddedToken& token : by_first_byte_[first]) {
      if (rest.starts_with(token.content)) return {FoundToken::Kind::token, at, at + token.content.size(), token.id};
      if (!closed && token.content.starts_with(rest)) return {FoundToken::Kind::undecided, at, text.size(), 0};
    }
  }
  return {};
}

} // namespace triax::data
