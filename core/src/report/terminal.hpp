// SPDX-License-Identifier: Apache-2.0
// What stderr or stdout is: whether a bar can be drawn on it, in how many columns, and whether colour is wanted.
//
// Threads: any. Ownership: values. Blocking: asks the system, does not wait. Errors: none.
#pragma once

#include <cstddef>
#include <string>

namespace triax::report {

/// Takes a bar, or half of one, off the line before something else is written on it.
inline constexpr const char* kClearLine = "\r\x1b[K";

struct Terminal {
  bool terminal = false; // lines can be rewritten
  bool colour = false;
  int columns = 80;
};

/// Attributes of text on a terminal (ECMA-48, SGR).
inline constexpr const char *kBold = "1", *kFaint = "2", *kGreen = "32";

struct Paint {
  bool wanted = false;
  std::string operator()(const char* attribute, const std::string& text) const {
    return wanted ? std::string("\x1b[").append(attribute) + 'm' + text + "\x1b[0m" : text;
  }
};

/// Folds lines that are longer than `columns` at their spaces; what is folded is indented by two more spaces than its
/// line. Words stay whole. 0 columns: nothing is folded. Without escape sequences.
std::string fold_words(const std::string& text, std::size_t columns);

/// A terminal that cannot move its cursor (TERM=dumb) counts as none; NO_COLOR, set and not empty, means no colour.
Terminal stderr_terminal();
Terminal stdout_terminal();

/// The same, from what it depends on; null: not set.
Terminal decide_terminal(bool is_terminal, const char* term, const char* no_color, int columns);

} // namespace triax::report
