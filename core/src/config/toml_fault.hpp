// SPDX-License-Identifier: Apache-2.0
// What is wrong with a text that is not TOML, in words that say what to write instead: a parser tells what it expected.
//
// Threads: any. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace triax::config {

/// Lines and columns count from 1; a column is a character.
struct TomlFault {
  int line = 0, column = 0;
  std::string message, hint;
};

/// `reason`, `line` and `column` are the parser's. They stand as they are where nothing better is known.
TomlFault toml_fault(std::string_view bytes, int line, int column, std::string_view reason);

} // namespace triax::config
