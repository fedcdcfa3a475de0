// UTF-8: checked as it arrives in pieces, read and written a character at a time.
//
// Threads: values; pure functions. Ownership: values. Blocking: never. Errors: none: where a text is ill-formed is the
// answer. Well-formed is what Unicode's table 3-7 says: no surrogates, nothing above U+10FFFF, no form longer than
// needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace triax::data {

class Utf8Check {
 public:
  /// False from the first byte on that cannot stand there.
  bool feed(std::string_view piece);
  /// The end of the text: false in the middle of a character. Afterwards another text may begin.
  bool finish();
  /// Where in the text the ill-formed character begins.
  std::uint64_t bad_at() const { return begin_; }

 private:
  bool lead(unsigned char byte);

  std::uint64_t offset_ = 0, begin_ = 0; // begin_: of the character being read
  int left_ = 0;                         // bytes of it to come
  unsigned char low_ = 0, high_ = 0;     // what the next may be
};

/// The first byte of the first ill-formed character.
std::optional<std::size_t> ill_formed_at(std::string_view text);
/// Length without a last character that is cut off. `text` is well-formed otherwise.
std::size_t whole_characters(std::string_view text);
/// Takes the first character off well-formed text, which must not be empty.
char32_t take_character(std::string_view& text);
void append_utf8(std::string& out, char32_t character);

} // namespace triax::data
