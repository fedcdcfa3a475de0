// SPDX-License-Identifier: Apache-2.0
// Makes text from outside (a TOML file, a file name, a plugin) safe to print on a terminal, and checks UTF-8.
//
// Header only, and not part of the plugin ABI: the engine and the core each compile it.
#pragma once

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

/// Replaces control characters by \u001B and invalid UTF-8 by \xFF, so that a name cannot change colours, move the
/// cursor or overwrite output. Keeps tabs, and line breaks before an indented line, as hints have.
inline std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const unsigned char code = length == 2 ? static_cast<unsigned char>(text[1]) : first;
    const bool control = length == 1 ? code < 0x20 || code == 0x7F : length == 2 && first == 0xC2 && code < 0xA0;
    const bool layout = code == '\t' || (code == '\n' && text.substr(1).starts_with("  "));
    if (length > 0 && (!control || layout)) {
      out.append(text.substr(0, length));
    } else {
      out.append(length == 0 ? "\\x" : "\\u00").append({kDigits[code >> 4], kDigits[code & 15]});
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

} // namespace triax
