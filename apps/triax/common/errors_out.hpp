// SPDX-License-Identifier: Apache-2.0
// Prints errors to stderr, with control characters escaped, and as JSON to stdout with --json.
//
// Blocking: writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace triax::app {

/// Prints to stderr. With `as_json`, for subcommands whose result has no field for it, also {"problem": ...} to stdout.
void print_problem(std::string_view problem, bool as_json = false);

/// A mistake in a large run can be refused once per rank and operation. Only this many errors are printed.
inline constexpr std::size_t kMaxRefusals = 20;

/// Prints the first errors to stderr, and how many more there are.
void print_refusals(const std::vector<std::string>& refusals);

/// The first errors as "refusals" of a JSON object, and as "more_refusals" how many more there are, if any.
template <class Json>
void add_refusals(Json& out, const std::vector<std::string>& refusals) {
  const std::size_t shown = std::min(refusals.size(), kMaxRefusals);
  out["refusals"] = std::vector<std::string>(refusals.begin(), refusals.begin() + static_cast<std::ptrdiff_t>(shown));
  if (shown < refusals.size()) out["more_refusals"] = refusals.size() - shown;
}
/// As one line.
std::string refusals_json(const std::vector<std::string>& refusals);

} // namespace triax::app
