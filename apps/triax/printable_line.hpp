// SPDX-License-Identifier: Apache-2.0
// A name from elsewhere (a path, a plugin's text) as a part of one line on a terminal.
//
// Threads: any. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>

#include "base/printable.hpp"

namespace triax::app {

/// printable(), with every line break escaped: printable() keeps one before an indented line, which a name may imitate.
inline std::string printable_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) text.replace(at, 1, "\\u000A");
  return printable(text);
}

} // namespace triax::app
