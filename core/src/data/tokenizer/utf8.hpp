// SPDX-License-Identifier: Apache-2.0
// UTF-8: checks text that arrives in pieces, and reads and writes single characters.
//
// Valid is what Unicode's table 3-7 allows: no surrogates, nothing above U+10FFFF, no overlong form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::data {

class Utf8Check {
 public:
  /// Returns false from the first invalid byte on.
  bool feed(std::string_view piece);
  /// Ends the text. Returns false in the middle of a character. Another text may follow.
  bool finish();
  /// Offset of the invalid character in the text.
  std::uint64_t bad_at() const { return begin_; }

 private:
  bool lead(unsigned char byte);

  std::uint64_t offset_ = 0, begin_ = 0; // begin_: offset of the current character
  int left_ = 0;                         // remaining bytes of the current character
  unsigned char low_ = 0, high_ = 0;     // valid range of the next byte
};

/// Offset of the first invalid character.
std::optional<std::size_t> ill_formed_at(std::string_view text);
/// Number of ASCII bytes at the start of `text`, counted in steps of eight bytes.
std::size_t ascii_words(std::string_view text);
/// Length without an incomplete character at the end. `text` must be valid otherwise.
std::size_t whole_characters(std::string_view text);
/// Removes and returns the first character. The text must be valid and not empty.
char32_t take_character(std::string_view& text);
void append_utf8(std::string& out, char32_t character);

} // namespace triax::data
