// SPDX-License-Identifier: Apache-2.0
// Unicode's normalization form C, as `tokenizers` computes it: "e" and U+0301 become "é" (UAX #15).
//
// A text consists of segments that are normalized one by one. A segment begins at each character that never changes and
// never joins the character before it, such as a letter. Almost all text is in NFC, which is found without normalizing.
//
// Threads: an Nfc is read-only and may be shared; an NfcText belongs to one thread. All texts must be valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace triax::data {

/// A text in NFC, and where its parts come from.
class NfcText {
 public:
  /// A place in the original text: `skip` bytes into the normalized form of the text from `byte` on.
  struct Place {
    std::size_t byte = 0, skip = 0;
  };

  std::string_view text() const { return text_; }
  /// The place of a position in text(). With skip 0, the text from `byte` on has the rest of text() as its NFC.
  Place place_of(std::size_t position) const;

 private:
  friend class Nfc;
  struct Change { // a segment that is not in NFC
    std::size_t from, from_end, to, to_end;
  };
  std::string text_;
  std::vector<Change> changes_;
  std::vector<std::int32_t> characters_; // of a segment
};

class Nfc {
 public:
  Nfc();

  /// May be false for a text that is in NFC, if it needs a closer look.
  bool is_normal(std::string_view text) const { return next_segment(text, 0).begin == text.size(); }
  void normalize(std::string_view text, NfcText& out) const;
  std::string normalized(std::string_view text) const;
  /// Length of the text without its last segment, which a continuation can change.
  std::size_t settled(std::string_view text) const;

 private:
  struct Segment {
    std::size_t begin, end;
  };
  void enter_parts(std::int32_t character);
  std::uint8_t kind_of(char32_t character) const { return character < kinds_.size() ? kinds_[character] : 0; }
  /// The next segment that may not be in NFC; it begins at the end of the text if none follows.
  Segment next_segment(std::string_view text, std::size_t from) const;
  void append(std::string_view segment, NfcText& out) const;

  std::vector<std::uint8_t> kinds_; // by character: see nfc.cpp
};

} // namespace triax::data
