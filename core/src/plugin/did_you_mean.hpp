// SPDX-License-Identifier: Apache-2.0
// Finds names similar to a misspelled one, for "did you mean".
//
// Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triax::plugin {

/// Number of insertions, deletions, replacements and swaps of neighbours between two strings.
int edit_distance(std::string_view a, std::string_view b);

/// The candidates within the distance of a likely misspelling (a third of the name's letters, at least 1), sorted by
/// distance, then alphabetically; at most three.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates);

} // namespace triax::plugin
