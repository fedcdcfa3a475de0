// SPDX-License-Identifier: Apache-2.0
#include "data/text_stream.hpp"

#include <algorithm>
#include <cstddef>

#include "base/printable.hpp"
#include "data/tokenizer/utf8.hpp"

namespace triax::data {

namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr std::size_t kMaxCharacter = 4; // bytes

/// Whether more bytes can make it a character.
bool begins_character(std::string_view bytes) {
  return bytes.size() < kMaxCharacter && utf8_length(bytes) == 0 && Utf8Check().feed(bytes);
}

} // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string TextStream::add(std::string_view bytes) {
  if (is_stopped_) return {};
  held_.append(bytes);
  std::size_t stop = std::string::npos;
  for (const std::string& text : stops_) stop = std::min(stop, held_.find(text));
  if (stop == std::string::npos) return take(possible_stop(), false);
  is_stopped_ = true;
  std::string out = take(stop, true);
  held_.clear();
  return out;
}

std::string TextStream::finish() {
  return take(held_.size(), true);
}

/// Where the first stop sequence begins that later bytes can complete.
std::size_t TextStream::possible_stop() const {
  std::size_t out = held_.size();
  for (const std::string& text : stops_)
    for (std::size_t length = std::min(text.size() - 1, held_.size()); length > 0; --length)
      if (held_.ends_with(std::string_view(text).substr(0, length))) {
        out = std::min(out, held_.size() - length);
        break;
      }
  return out;
}

/// Removes the first bytes and returns them as characters; unless this is the end, without a character that has later
/// bytes.
std::string TextStream::take(std::size_t bytes, bool is_end) {
  std::string out;
  std::size_t at = 0;
  while (at < bytes) {
    const std::string_view rest = std::string_view(held_).substr(at, is_end ? bytes - at : std::string::npos);
    if (const std::size_t length = utf8_length(rest); length > 0) {
      if (at + length > bytes) break;
      out.append(rest.substr(0, length));
      at += length;
      continue;
    }
    std::size_t part = std::min(rest.size(), kMaxCharacter - 1); // that begins a character
    while (part > 1 && !begins_character(rest.substr(0, part))) --part;
    if (!is_end && part == rest.size() && begins_character(rest)) break;
    out.append(kReplacement);
    at += std::min(part, bytes - at);
  }
  held_.erase(0, at);
  return out;
}

} // namespace triax::data
