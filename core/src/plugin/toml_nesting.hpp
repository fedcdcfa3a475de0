// SPDX-License-Identifier: Apache-2.0
// Checks how deep a TOML text is nested before a parser reads it. toml++ 3.3 does not limit the parts of a dotted key,
// and destroys the resulting tables recursively, so a text of some hundred kilobytes would overflow the stack.
//
// Threads: any.
#pragma once

#include <optional>
#include <string_view>

namespace triax::plugin {

/// Levels of one value: each part of the table's name and of the key, each list and each inline table. The deepest key
/// of a run has three parts.
inline constexpr int kMaxTomlNesting = 32;

struct DeepNesting {
  int line = 0, column = 0; // position of the table's name or key; from 1, columns count characters
  int levels = 0;
};

/// The first statement that is nested deeper than kMaxTomlNesting. If the text is not valid TOML, scans up to the
/// position at which a parser also stops.
std::optional<DeepNesting> find_deep_nesting(std::string_view toml);

} // namespace triax::plugin
