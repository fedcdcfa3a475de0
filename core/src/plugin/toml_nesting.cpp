// SPDX-License-Identifier: Apache-2.0
// Scans TOML's lexical structure without recursion: skips strings and comments, counts keys and brackets.
#include "plugin/toml_nesting.hpp"

#include <algorithm>
#include <vector>

namespace triax::plugin {

namespace {

constexpr std::string_view kNotInBareKey = " \t\r\n.=[]{},#\"'";

class Scanner {
 public:
  explicit Scanner(std::string_view toml) : text_(toml) {}

  std::optional<DeepNesting> scan() {
    if (constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF"; starts(kByteOrderMark)) at_ = kByteOrderMark.size();
    while (skip_blank_lines()) {
      start_ = at_;
      deepest_ = 0;
      const bool valid = text_[at_] == '[' ? header() : pair();
      if (deepest_ > kMaxTomlNesting) return DeepNesting{line_of(start_), column_of(start_), deepest_};
      if (!valid) break;
      skip_line();
    }
    return std::nullopt;
  }

 private:
  /// An open list or inline table.
  struct Open {
    char closed_by;
    int outer; // levels around it
  };

  bool ends() const { return at_ >= text_.size(); }
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }
  void skip(std::string_view characters) { at_ = std::min(text_.find_first_not_of(characters, at_), text_.size()); }
  void skip_line() { at_ = std::min(text_.find('\n', at_), text_.size()); }
  void reach(int levels) { deepest_ = std::max(deepest_, levels); }

  /// Skips white space, line ends and comments; returns false at the end of the text.
  bool skip_blank_lines() {
    for (skip(" \t\r\n"); !ends() && text_[at_] == '#'; skip(" \t\r\n")) skip_line();
    return !ends();
  }

  bool header() {
    at_ += starts("[[") ? 2 : 1;
    table_levels_ = key();
    reach(table_levels_);
    return table_levels_ > 0 && starts("]");
  }

  bool pair() {
    const int parts = key();
    reach(table_levels_ + parts);
    if (parts == 0 || !starts("=")) return false;
    ++at_;
    skip(" \t");
    return value(table_levels_ + parts);
  }

  /// The number of parts of a dotted key; stops after it. 0 if it is not valid.
  int key() {
    for (int parts = 1;; ++parts) {
      skip(" \t");
      if (!part()) return 0;
      skip(" \t");
      if (!starts(".")) return parts;
      ++at_;
    }
  }

  bool part() {
    if (starts("\"") || starts("'")) return string_of_one_line();
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(kNotInBareKey, at_), text_.size());
    return at_ > begin;
  }

  /// A value with everything nested in it. `levels`: around it. Not recursive, because the text determines the depth.
  bool value(int levels) {
    std::vector<Open> open;
    do {
      if (!open.empty() && !skip_blank_lines()) return false;
      const char next = ends() ? '\n' : text_[at_];
      if (next == '[' || next == '{') {
        open.push_back({next == '[' ? ']' : '}', levels});
        reach(++levels);
        ++at_;
        if (next == '{' && !inline_key(levels)) return false;
      } else if (!open.empty() && next == open.back().closed_by) {
        ++at_;
        levels = open.back().outer;
        open.pop_back();
      } else if (!open.empty() && next == ',') {
        ++at_;
        levels = open.back().outer + 1;
        if (open.back().closed_by == '}' && !inline_key(levels)) return false;
      } else if (!scalar(open.empty() ? "#\n" : ",]}#\n")) {
        return false;
      }
    } while (!open.empty());
    return true;
  }

  /// The key before a value in an inline table, whose parts are levels of the value; or nothing, before the table's
  /// end.
  bool inline_key(int& levels) {
    if (!skip_blank_lines()) return false;
    if (starts("}")) return true;
    const int parts = key();
    levels += parts;
    reach(levels);
    if (parts == 0 || !starts("=")) return false;
    ++at_;
    return true;
  }

  /// A string, or other text up to one of `ends`.
  bool scalar(std::string_view ends) {
    for (const std::string_view quotes : {"\"\"\"", "'''"})
      if (starts(quotes)) return string_of_lines(quotes);
    if (starts("\"") || starts("'")) return string_of_one_line();
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(ends, at_), text_.size());
    return at_ > begin;
  }

  bool string_of_one_line() {
    const char quote = text_[at_++];
    for (; !ends() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return true;
      }
      if (text_[at_] == '\\' && quote == '"') ++at_;
    }
    return false;
  }

  bool string_of_lines(std::string_view quotes) {
    for (at_ += quotes.size(); !ends(); ++at_) {
      if (starts(quotes)) {
        at_ += quotes.size();
        for (int more = 0; more < 2 && starts(quotes.substr(0, 1)); ++more) ++at_; // quotes at the end of the value
        return true;
      }
      if (text_[at_] == '\\' && quotes.front() == '"') ++at_;
    }
    return false;
  }

  int line_of(std::size_t byte) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(byte), '\n'));
  }
  int column_of(std::size_t byte) const {
    const std::size_t newline = byte == 0 ? std::string_view::npos : text_.rfind('\n', byte - 1);
    const std::string_view before = text_.substr(newline + 1, byte - newline - 1);
    const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    return 1 + static_cast<int>(std::count_if(before.begin(), before.end(), starts_character));
  }

  std::string_view text_;
  std::size_t at_ = 0, start_ = 0; // start_: of the statement
  int table_levels_ = 0, deepest_ = 0;
};

} // namespace

std::optional<DeepNesting> find_deep_nesting(std::string_view toml) {
  return Scanner(toml).scan();
}

} // namespace triax::plugin
