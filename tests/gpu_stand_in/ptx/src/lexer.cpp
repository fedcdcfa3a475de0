// SPDX-License-Identifier: Apache-2.0
// Splits PTX text into tokens.
#include "lexer.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace triax::gpu_stand_in {

void refuse(unsigned line, std::string_view what, std::string_view token) {
  throw PtxError("PTX line " + std::to_string(line) + ": " + std::string(what) + ": " + std::string(token));
}

namespace {

constexpr std::array<bool, 256> kInWord = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$%.")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();

bool in_word(char c) {
  return kInWord[static_cast<unsigned char>(c)];
}

// End of the word that begins at `at`; "::" is part of a word (L2::128B).
std::size_t word_end(std::string_view s, std::size_t at) {
  while (at < s.size()) {
    if (in_word(s[at])) {
      ++at;
    } else if (s.substr(at, 2) == "::") {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

} // namespace

std::vector<Token> split_tokens(std::string_view s) {
  std::vector<Token> tokens;
  unsigned line = 1;
  std::size_t at = 0;
  auto skip_to = [&](std::size_t end) {
    end = std::min(end, s.size());
    line += static_cast<unsigned>(std::count(s.begin() + at, s.begin() + end, '\n'));
    at = end;
  };
  while (at < s.size()) {
    const char c = s[at];
    if (std::isspace(static_cast<unsigned char>(c))) {
      skip_to(at + 1);
    } else if (s.substr(at, 2) == "//") {
      skip_to(std::min(s.find('\n', at), s.size()));
    } else if (s.substr(at, 2) == "/*") {
      const auto end = s.find("*/", at);
      if (end == std::string_view::npos) refuse(line, "comment without an end", "/*");
      skip_to(end + 2);
    } else if (c == '"') {
      const auto end = s.find('"', at + 1);
      if (end == std::string_view::npos) refuse(line, "string without an end", "\"");
      tokens.push_back({s.substr(at, end + 1 - at), line});
      skip_to(end + 1);
    } else if (in_word(c)) {
      const auto end = word_end(s, at);
      tokens.push_back({s.substr(at, end - at), line});
      at = end;
    } else if (std::string_view("{}()[],;:@!|+-<>=").find(c) != std::string_view::npos) {
      tokens.push_back({s.substr(at++, 1), line});
    } else {
      refuse(line, "unknown character", s.substr(at, 1));
    }
  }
  return tokens;
}

} // namespace triax::gpu_stand_in
