// SPDX-License-Identifier: Apache-2.0
// Added tokens, such as <|endoftext|>: found in the original text, before it is cut into words.
//
// Threads: read-only after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triax::data {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool special = false, normalized = false; // normalized: searched for after the others
};

/// The next added token in a text. undecided: the text may continue, and its end is the beginning of a token.
struct FoundToken {
  enum class Kind { none, token, undecided } kind = Kind::none;
  std::size_t begin = 0, end = 0;
  std::int32_t id = 0;
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// The leftmost token from `from` on; of several at one position, the longest.
  FoundToken find(std::string_view text, std::size_t from, bool closed) const;

 private:
  std::array<std::vector<AddedToken>, 256> by_first_byte_; // longest first
  std::array<bool, 256> starts_{};
};

} // namespace triax::data
