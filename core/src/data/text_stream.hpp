// SPDX-License-Identifier: Apache-2.0
// Text that grows by the bytes of one token after the other, as whole UTF-8 characters, up to a stop sequence.
//
// A token may end inside a character, and a stop sequence may span tokens: bytes that later ones may complete are held
// back. Invalid bytes become U+FFFD, as in Python's errors="replace": one for each maximal part of a character
// (Unicode 15, section 3.9).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triax::data {

class TextStream {
 public:
  /// `stops`: not empty, each.
  explicit TextStream(std::vector<std::string> stops = {});

  /// Returns the text that no later bytes can change. Bytes after a stop sequence are dropped.
  std::string add(std::string_view bytes);
  /// Whether a stop sequence was found: the text before it is all.
  bool is_stopped() const { return is_stopped_; }
  /// Ends the text: returns what was held back.
  std::string finish();

 private:
  std::string take(std::size_t bytes, bool is_end);
  std::size_t possible_stop() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool is_stopped_ = false;
};

} // namespace triax::data
