// SPDX-License-Identifier: Apache-2.0
// Names near a misspelt one, for "did you mean".
//
// Threads: any. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triax::plugin {

/// Insertions, deletions, replacements and swaps of neighbours between two texts.
int edit_distance(std::string_view a, std::string_view b);

/// The candidates near enough to be meant (a third of the name's letters may differ, at least 1), nearest first, then
/// by alphabet; at most three.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

} // namespace triax::plugin
