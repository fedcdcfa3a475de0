// SPDX-License-Identifier: Apache-2.0
// Checks how deep a TOML text is nested before a parser reads it: toml++ 3.3 does not bound the parts of a dotted key,
// and destroys what it made of them recursively, so a text of some hundred kilobytes would overflow the stack.
//
// Threads: any. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <optional>
#include <string_view>

namespace triax::plugin {

/// Levels of one value: each part of the table's name and of the key, each list and each inline table. The deepest key
/// of a run has three parts.
inline constexpr int kMaxTomlNesting = 32;

struct DeepNesting {
  int line = 0, column = 0; // of the table's name or the key; from 1, a column is a character
  int levels = 0;
};

/// The first statement that is nested deeper than kMaxTomlNesting. A text that is not valid TOML is scanned up to the
/// place where a parser must stop as well.
std::optional<DeepNesting> find_deep_nesting(std::string_view toml);

} // namespace triax::plugin
