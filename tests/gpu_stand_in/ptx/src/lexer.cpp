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

// Splits a text from its begin to its end.
class Lexer {
 public:
  Lexer(std::string_view text, unsigned line) : s_(text), line_(line) {}

  std::vector<Token> split(bool whole_bodies) {
    bool in_head = false; // of a function
    while (at_ < s_.size()) {
      const char c = s_[at_];
      if (std::isspace(static_cast<unsigned char>(c))) {
        skip_to(at_ + 1);
      } else if (is_comment(at_)) {
        skip_to(end_of_comment(at_));
      } else if (c == '{' && in_head) {
        add(end_of_body());
        in_head = false;
      } else if (c == '"') {
        add(end_of_string(at_));
      } else if (in_word(c)) {
        add(word_end(s_, at_));
        const auto word = tokens_.back().text;
        if (whole_bodies && (word == ".entry" || word == ".func")) in_head = true;
      } else if (std::string_view("{}()[],;:@!|+-<>=").find(c) != std::string_view::npos) {
        add(at_ + 1);
        if (c == ';') in_head = false;
      } else {
        refuse(line_, "unknown character", s_.substr(at_, 1));
      }
    }
    return std::move(tokens_);
  }

 private:
  void skip_to(std::size_t end) {
    line_ += static_cast<unsigned>(std::count(s_.begin() + at_, s_.begin() + end, '\n'));
    at_ = end;
  }
  void add(std::size_t end) {
    tokens_.push_back({s_.substr(at_, end - at_), line_});
    skip_to(end);
  }
  bool is_comment(std::size_t at) const {
    return s_[at] == '/' && (s_.substr(at, 2) == "//" || s_.substr(at, 2) == "/*");
  }
  std::size_t end_of_comment(std::size_t at) const {
    if (s_[at + 1] == '/') return std::min(s_.find('\n', at), s_.size());
    const auto end = s_.find("*/", at);
    if (end == std::string_view::npos) refuse(line_, "comment without an end", "/*");
    return end + 2;
  }
  std::size_t end_of_string(std::size_t at) const {
    const auto end = s_.find('"', at + 1);
    if (end == std::string_view::npos) refuse(line_, "string without an end", "\"");
    return end + 1;
  }
  std::size_t end_of_body() const {
    int depth = 0;
    for (std::size_t at = at_; at < s_.size();) {
      const char c = s_[at];
      if (c == '"') {
        at = end_of_string(at);
        continue;
      }
      if (is_comment(at)) {
        at = end_of_comment(at);
        continue;
      }
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      ++at;
      if (depth == 0) return at;
    }
    refuse(line_, "body without an end", "{");
  }

  std::string_view s_;
  std::size_t at_ = 0;
  unsigned line_;
  std::vector<Token> tokens_;
};

} // namespace

std::vector<Token> split_tokens(std::string_view ptx, unsigned line) {
  return Lexer(ptx, line).split(false);
}
std::vector<Token> split_module(std::string_view ptx) {
  return Lexer(ptx, 1).split(true);
}

} // namespace triax::gpu_stand_in
