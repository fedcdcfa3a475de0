// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/pattern_syntax.hpp"

#include <cctype>
#include <cstdio>

#include "data/tokenizer/unicode_additions.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

constexpr const char* kTaken =
    "supported: literals, [...], \\p{L} and similar, \\s, \\S, \\r \\n"
    " \\t, groups (?:...) (?i:...) (?=...) (?!...), |, * + ? {n} {n,} {n,m}";

/// Unicode's White_Space. PCRE2's own \s also has U+180E.
constexpr const char* kWhiteSpace =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string take() {
    while (at_ < in_.size()) outside();
    return std::move(out_);
  }

 private:
  void outside() {
    const char c = in_[at_];
    if (c == '\\') return escape(false);
    if (c == '[') return character_class();
    if (c == '(') return group();
    if (c == '*' || c == '+' || c == '?' || c == '{') return quantifier();
    if (c == '^' || c == '$' || c == '.' || c == ']' || c == '}') refuse(1);
    copy(1);
  }

  void group() {
    for (const std::string_view start : {"(?:", "(?i:", "(?=", "(?!"}) {
      if (in_.substr(at_).starts_with(start)) return copy(start.size());
    }
    if (in_.substr(at_).starts_with("(?")) refuse(3);
    copy(1);
  }

  void quantifier() {
    bool counted = false;
    if (in_[at_] == '{') {
      const std::size_t end = in_.find('}', at_);
      if (end == std::string_view::npos) refuse(1);
      const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
      if (inside.empty() || !std::isdigit(static_cast<unsigned char>(inside.front())) ||
          inside.find_first_not_of("0123456789,") != std::string_view::npos) {
        refuse(end + 1 - at_);
      }
      copy(end + 1 - at_);
      counted = true;
    } else {
      copy(1);
    }
    if (at_ == in_.size()) return;
    if (in_[at_] == '?') return copy(1);
    if (in_[at_] != '+') return;
    if (counted) refuse(1); // possessive in one syntax, a second quantifier in the other
    copy(1);
  }

  void character_class() {
    copy(1);
    if (at_ < in_.size() && in_[at_] == '^') copy(1);
    if (at_ < in_.size() && in_[at_] == ']') refuse(1);
    while (at_ < in_.size() && in_[at_] != ']') {
      const bool both = in_.substr(at_).starts_with("&&"); // Oniguruma: the intersection
      if (in_[at_] == '[' || both) refuse(both ? 2 : 1);
      if (in_[at_] == '\\') {
        escape(true);
      } else {
        copy(1);
      }
    }
    if (at_ == in_.size()) fail("[ without ]");
    copy(1);
  }

  void escape(bool in_class) {
    if (at_ + 1 == in_.size()) fail("ends in \\");
    const char c = in_[at_ + 1];
    if (c == 'p') return category(in_class);
    if (c == 's') return set(kWhiteSpace, 2, in_class);
    if (c == 'S' && !in_class) {
      out_ += std::string("[^") + kWhiteSpace + "]";
      at_ += 2;
      return;
    }
    const bool punctuation = std::ispunct(static_cast<unsigned char>(c)) != 0;
    if (!punctuation && c != 'r' && c != 'n' && c != 't') refuse(2);
    copy(2);
  }

  void category(bool in_class) {
    const std::size_t end = in_.find('}', at_);
    if (end == std::string_view::npos || in_[at_ + 2] != '{') refuse(2);
    const std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    for (const CategoryAddition& known : kCategories) {
      if (known.category != name) continue;
      std::string members = "\\p{" + std::string(name) + "}";
      for (const CharacterRange& range : known.ranges) {
        char more[32];
        std::snprintf(more, sizeof more, "\\x{%x}-\\x{%x}", static_cast<unsigned>(range.first),
                      static_cast<unsigned>(range.last));
        members += more;
      }
      return set(members, end + 1 - at_, in_class);
    }
    refuse(end + 1 - at_);
  }

  /// Writes the set `members` instead of the next `taken` bytes.
  void set(const std::string& members, std::size_t taken, bool in_class) {
    out_ += in_class ? members : "[" + members + "]";
    at_ += taken;
    const std::string_view rest = in_.substr(at_);
    if (in_class && rest.starts_with('-') && !rest.starts_with("-]")) refuse(1); // a range that starts with a set
  }

  void copy(std::size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }

  [[noreturn]] void refuse(std::size_t count) const {
    fail(text("has {} at byte {}, which is not supported", in_.substr(at_, count), at_));
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(text("the pattern {} {}", in_, problem), {}, kTaken);
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
};

} // namespace

std::string to_pcre2(std::string_view pattern) {
  return Translator(pattern).take();
}

} // namespace triax::data
