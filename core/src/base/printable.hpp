// SPDX-License-Identifier: Apache-2.0
// Makes text from outside (a TOML file, a file name, a plugin) safe to print on a terminal, and checks UTF-8.
//
// Header only, and not part of the plugin ABI: the engine and the core each compile it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace triax {

/// Length of the UTF-8 character at the start of `text`; 0 if there is none (Unicode 15, table 3-7).
inline std::size_t utf8_length(std::string_view text) {
  struct Row {
    unsigned char first, last; // range of the first byte
    unsigned char low, high;   // range of the second byte
    std::size_t length;
  };
  constexpr std::array<Row, 9> kRows = {{{0x00, 0x7F, 0, 0, 1},
                                         {0xC2, 0xDF, 0x80, 0xBF, 2},
                                         {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                         {0xE1, 0xEC, 0x80, 0xBF, 3},
                                         {0xED, 0xED, 0x80, 0x9F, 3},
                                         {0xEE, 0xEF, 0x80, 0xBF, 3},
                                         {0xF0, 0xF0, 0x90, 0xBF, 4},
                                         {0xF1, 0xF3, 0x80, 0xBF, 4},
                                         {0xF4, 0xF4, 0x80, 0x8F, 4}}};
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Row& row : kRows) {
    if (text.size() < row.length || byte(0) < row.first || byte(0) > row.last) continue;
    for (std::size_t i = 1; i < row.length; ++i) {
      if (byte(i) < (i == 1 ? row.low : 0x80) || byte(i) > (i == 1 ? row.high : 0xBF)) return 0;
    }
    return row.length;
  }
  return 0;
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// The code point of the UTF-8 character that `text` begins with; `length` as utf8_length(text) returns it.
inline char32_t code_point(std::string_view text, std::size_t length) {
  const auto first = static_cast<unsigned char>(text.front());
  char32_t out = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) out = (out << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  return out;
}

/// A control character, or one that changes the order of the characters around it (Unicode's bidirectional controls),
/// breaks a line or is invisible. Joiners stay: names in Persian and emoji have them.
inline bool is_unprintable(char32_t code) {
  constexpr std::array<std::array<char32_t, 2>, 9> kRanges = {{{0x00, 0x1F},
                                                               {0x7F, 0x9F},
                                                               {0x61C, 0x61C},
                                                               {0x200B, 0x200B},
                                                               {0x200E, 0x200F},
                                                               {0x2028, 0x202E},
                                                               {0x2060, 0x206F},
                                                               {0xFEFF, 0xFEFF},
                                                               {0xE0000, 0xE007F}}};
  for (const auto& [first, last] : kRanges)
    if (code >= first && code <= last) return true;
  return false;
}

/// Replaces unprintable characters by \u001B and invalid UTF-8 by \xFF, so that a name cannot change colours, move the
/// cursor, overwrite or reorder output. Keeps tabs, and line breaks before an indented line, as hints have.
inline std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char32_t code = length == 0 ? static_cast<unsigned char>(text.front()) : code_point(text, length);
    const bool layout = code == '\t' || (code == '\n' && text.substr(1).starts_with("  "));
    if (length > 0 && (!is_unprintable(code) || layout)) {
      out.append(text.substr(0, length));
    } else {
      out.append(length == 0 ? "\\x" : code > 0xFFFF ? "\\U" : "\\u");
      for (int digit = length == 0 ? 2 : code > 0xFFFF ? 8 : 4; digit-- > 0;)
        out.push_back(kDigits[(code >> (4 * digit)) & 15]);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

constexpr std::size_t kMaxShown = 200; // characters of a piece of input in a message

/// A piece of input as a message quotes it: at most `most` characters, and "..." for the rest.
inline std::string shortened(std::string_view text, std::size_t most = kMaxShown) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = 0;
  for (std::size_t count = 0; count < most && end < text.size(); ++count)
    end += std::max<std::size_t>(utf8_length(text.substr(end)), 1);
  return end < text.size() ? std::string(text.substr(0, end)) + "..." : std::string(text);
}

} // namespace triax
