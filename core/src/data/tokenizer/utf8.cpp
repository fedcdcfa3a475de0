// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace triax::data {

namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080;

int length_of(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

} // namespace

std::size_t ascii_words(std::string_view text) {
  std::size_t done = 0;
  for (std::uint64_t word = 0; done + sizeof word <= text.size(); done += sizeof word) {
    std::memcpy(&word, text.data() + done, sizeof word);
    if ((word & kHighBits) != 0) break;
  }
  return done;
}

bool Utf8Check::feed(std::string_view piece) {
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (left_ == 0) i += ascii_words(piece.substr(i));
    if (i == piece.size()) break;
    const auto byte = static_cast<unsigned char>(piece[i]);
    if (left_ == 0) {
      begin_ = offset_ + i;
      if (byte >= 0x80 && !lead(byte)) return false;
    } else {
      if (byte < low_ || byte > high_) return false;
      low_ = 0x80, high_ = 0xBF;
      --left_;
    }
  }
  offset_ += piece.size();
  return true;
}

bool Utf8Check::lead(unsigned char byte) {
  low_ = 0x80, high_ = 0xBF;
  if (byte < 0xC2 || byte > 0xF4) return false;
  left_ = length_of(byte) - 1;
  if (byte == 0xE0) low_ = 0xA0;
  if (byte == 0xED) high_ = 0x9F;
  if (byte == 0xF0) low_ = 0x90;
  if (byte == 0xF4) high_ = 0x8F;
  return true;
}

bool Utf8Check::finish() {
  if (left_ != 0) return false;
  offset_ = 0;
  return true;
}

std::optional<std::size_t> ill_formed_at(std::string_view text) {
  Utf8Check check;
  if (check.feed(text) && check.finish()) return std::nullopt;
  return static_cast<std::size_t>(check.bad_at());
}

std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte >= 0xC0) return static_cast<std::size_t>(length_of(byte)) > back ? text.size() - back : text.size();
  }
  return text.size();
}

char32_t take_character(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const int length = length_of(lead);
  char32_t out = length == 1 ? lead : lead & (0x7F >> length);
  for (int i = 1; i < length; ++i) {
    out = out << 6 | (static_cast<unsigned char>(text[static_cast<std::size_t>(i)]) & 0x3F);
  }
  text.remove_prefix(static_cast<std::size_t>(length));
  return out;
}

void append_utf8(std::string& out, char32_t character) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((character >> shift) & 0x3F)); };
  if (character < 0x80) {
    out += static_cast<char>(character);
  } else if (character < 0x800) {
    out += static_cast<char>(0xC0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    out += static_cast<char>(0xE0 | character >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | character >> 18);
    tail(12), tail(6), tail(0);
  }
}

} // namespace triax::data
