// Tokens that are found in the text as they stand, before it is cut into words: <|endoftext|> and its like.
//
// Threads: read-only after making. Ownership: values. Blocking: never. Errors: none.
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
  bool special = false, normalized = false; // normalized: looked for after those that are not
};

/// Where the text stops being plain: at a token, or, of a text that goes on, at what may become one.
struct FoundToken {
  enum class Kind { none, token, undecided } kind = Kind::none;
  std::size_t begin = 0, end = 0;
  std::int32_t id = 0;
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /// The leftmost from `from` on, of several the longest.
  FoundToken find(std::string_view text, std::size_t from, bool closed) const;

 private:
  std::array<std::vector<AddedToken>, 256> by_first_byte_; // longest first
  std::array<bool, 256> starts_{};
};

} // namespace triax::data
