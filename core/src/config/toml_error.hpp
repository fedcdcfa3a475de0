// SPDX-License-Identifier: Apache-2.0
// Explains TOML syntax errors and suggests a correction. The parser only reports what it expected.
//
// Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace triax::config {

/// Line and column start at 1; columns count characters, not bytes.
struct TomlError {
  int line = 0, column = 0;
  std::string message, hint;
};

/// `reason`, `line` and `column` come from the parser, and are returned unchanged if nothing better is known.
TomlError explain_toml_error(std::string_view bytes, int line, int column, std::string_view reason);

} // namespace triax::config
