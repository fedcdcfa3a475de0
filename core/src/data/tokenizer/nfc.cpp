// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/nfc.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>

#include "data/tokenizer/nfc_exceptions.hpp"
#include "data/tokenizer/utf8.hpp"
#include "triax/error.hpp"

namespace triax::data {

namespace {

/// Class of a character. Other values: the combining class of a mark that is in NFC if marks are in order.
constexpr std::uint8_t kBegins = 0;     // a segment; no decomposition joins the character before it
constexpr std::uint8_t kAlone = 254;    // a segment without characters after it
constexpr std::uint8_t kVaries = 255;   // may change, or join the character before it
constexpr std::size_t kKinds = 0x30000; // the characters above are alone
constexpr std::size_t kMaxParts = 8;    // of a character's decomposition; Unicode has at most 4

constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

using Parts = std::array<utf8proc_int32_t, kMaxParts>;

std::span<const utf8proc_int32_t> parts_of(std::int32_t character, Parts& parts) {
  const auto count = utf8proc_decompose_char(character, parts.data(), kMaxParts, UTF8PROC_DECOMPOSE, nullptr);
  if (count < 1 || count > static_cast<utf8proc_ssize_t>(kMaxParts))
    throw Error("utf8proc cannot decompose a character");
  return std::span(parts).first(static_cast<std::size_t>(count));
}

int order_of(std::int32_t character) {
  return utf8proc_get_property(character)->combining_class;
}

/// Stable, and in O(n log n), where utf8proc's sort of a long run of marks is quadratic.
void order_marks(std::vector<std::int32_t>& characters) {
  for (auto at = characters.begin(); at != characters.end();) {
    const auto is_letter = [](std::int32_t c) { return order_of(c) == 0; };
    const auto marks = std::find_if_not(at, characters.end(), is_letter);
    at = std::find_if(marks, characters.end(), is_letter);
    std::stable_sort(marks, at, [](std::int32_t a, std::int32_t b) { return order_of(a) < order_of(b); });
  }
}

} // namespace

NfcText::Place NfcText::place_of(std::size_t position) const {
  const auto after = std::ranges::upper_bound(changes_, position, {}, &Change::to);
  if (after == changes_.begin()) return {position, 0};
  const Change& change = *(after - 1);
  if (position >= change.to_end) return {change.from_end + (position - change.to_end), 0};
  return {change.from, position - change.to};
}

Nfc::Nfc() : kinds_(kKinds, kBegins) {
  for (std::int32_t character = 0; character < static_cast<std::int32_t>(kKinds); ++character) {
    if (character < 0xD800 || character > 0xDFFF) enter_parts(character); // surrogates are not characters
  }
  for (const CharacterRange& range : kNotInNfc) {
    for (char32_t character = range.first; character <= range.last; ++character) kinds_[character] = kAlone;
  }
}

void Nfc::enter_parts(std::int32_t character) {
  std::uint8_t& kind = kinds_[static_cast<std::size_t>(character)];
  const int order = order_of(character);
  if (order != 0 && kind == kBegins) kind = static_cast<std::uint8_t>(order);
  Parts buffer;
  const std::span<const std::int32_t> parts = parts_of(character, buffer);
  if (parts.size() == 1 && parts.front() == character) return;
  for (const std::int32_t part : parts.subspan(1)) kinds_[static_cast<std::size_t>(part)] = kVaries;
  std::vector<std::int32_t> composed(parts.begin(), parts.end());
  const auto length =
      utf8proc_normalize_utf32(composed.data(), static_cast<utf8proc_ssize_t>(composed.size()), kCompose);
  if (length != 1 || composed.front() != character) kind = kVaries;
}

Nfc::Segment Nfc::next_segment(std::string_view text, std::size_t from) const {
  std::size_t begin = from;
  std::uint8_t before = 0;
  bool varies = false;
  for (std::size_t at = from; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) { // most text
      if (varies) return {begin, at};
      const std::size_t ascii = std::max<std::size_t>(1, ascii_words(text.substr(at)));
      before = 0;
      begin = at + ascii - 1;
      at += ascii;
      continue;
    }
    std::string_view rest = text.substr(at);
    const std::uint8_t kind = kind_of(take_character(rest));
    const std::size_t end = text.size() - rest.size();
    if (kind == kBegins || kind == kAlone) {
      if (varies) return {begin, at};
      begin = kind == kAlone ? end : at;
      before = 0;
    } else {
      varies = varies || kind == kVaries || kind < before;
      before = kind;
    }
    at = end;
  }
  return {varies ? begin : text.size(), text.size()};
}

void Nfc::append(std::string_view segment, NfcText& out) const {
  out.characters_.clear();
  while (!segment.empty()) {
    Parts buffer;
    const auto parts = parts_of(static_cast<std::int32_t>(take_character(segment)), buffer);
    out.characters_.insert(out.characters_.end(), parts.begin(), parts.end());
  }
  order_marks(out.characters_);
  const auto length =
      utf8proc_normalize_utf32(out.characters_.data(), static_cast<utf8proc_ssize_t>(out.characters_.size()), kCompose);
  if (length < 0) throw Error("utf8proc cannot compose a text");
  for (const std::int32_t character : std::span(out.characters_).first(static_cast<std::size_t>(length)))
    append_utf8(out.text_, static_cast<char32_t>(character));
}

void Nfc::normalize(std::string_view text, NfcText& out) const {
  out.text_.clear();
  out.changes_.clear();
  for (std::size_t from = 0; from < text.size();) {
    const Segment found = next_segment(text, from);
    out.text_ += text.substr(from, found.begin - from);
    from = found.end;
    if (found.begin == text.size()) break;
    const std::string_view segment = text.substr(found.begin, found.end - found.begin);
    const std::size_t to = out.text_.size();
    append(segment, out);
    if (std::string_view(out.text_).substr(to) != segment)
      out.changes_.push_back({found.begin, found.end, to, out.text_.size()});
  }
}

std::string Nfc::normalized(std::string_view text) const {
  NfcText out;
  normalize(text, out);
  return out.text_;
}

std::size_t Nfc::settled(std::string_view text) const {
  for (std::size_t end = text.size(); end > 0;) {
    std::size_t at = end - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    std::string_view rest = text.substr(at);
    const std::uint8_t kind = kind_of(take_character(rest));
    if (kind == kBegins) return at;
    if (kind == kAlone) return end;
    end = at;
  }
  return 0;
}

} // namespace triax::data
