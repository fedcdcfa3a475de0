// SPDX-License-Identifier: Apache-2.0
// Makes external text (a path, a plugin's string) printable within one line of a terminal.
//
// Threads: any.
#pragma once

#include <string>

#include "base/printable.hpp"

namespace triax::app {

/// printable() with all line breaks escaped. printable() itself keeps a line break before an indented line, which a
/// name could imitate.
inline std::string printable_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, "\\u000A");
  return printable(text);
}

} // namespace triax::app
