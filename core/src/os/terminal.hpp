// SPDX-License-Identifier: Apache-2.0
// Properties of stderr and stdout: whether it is a terminal, its columns, and whether to use colour.
//
// Threads: any. Errors: none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace triax::os {

/// Clears the line, including a progress bar, before other output.
inline constexpr const char* kClearLine = "\r\x1b[K";

struct Terminal {
  bool terminal = false; // lines can be rewritten
  bool colour = false;
  int columns = 80;
};

/// Text attributes of terminals (ECMA-48, SGR).
inline constexpr const char *kBold = "1", *kFaint = "2", *kGreen = "32";

struct Paint {
  bool wanted = false;
  std::string operator()(const char* attribute, const std::string& text) const {
    return wanted ? std::string("\x1b[").append(attribute) + 'm' + text + "\x1b[0m" : text;
  }
};

/// Folds lines that are longer than `columns` at spaces; continuation lines are indented by two more spaces. Words are
/// not split. 0 columns: no folding. The text must have no escape sequences.
std::string fold_words(const std::string& text, std::size_t columns);

/// Lines of text for a terminal: other control characters and invalid UTF-8 are escaped.
std::string printable_lines(std::string_view text);

/// A terminal that cannot move its cursor (TERM=dumb) does not count; a non-empty NO_COLOR disables colour.
Terminal stderr_terminal();
Terminal stdout_terminal();

/// The same from explicit inputs; null: variable not set.
Terminal decide_terminal(bool is_terminal, const char* term, const char* no_color, int columns);

} // namespace triax::os
