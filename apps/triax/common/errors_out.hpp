// SPDX-License-Identifier: Apache-2.0
// Prints errors to stderr, with control characters escaped, and as JSON to stdout with --json.
//
// Blocking: writes.
#pragma once

#include <string_view>

namespace triax::app {

/// Prints to stderr. With `as_json`, for subcommands whose result has no field for it, also {"problem": ...} to stdout.
void print_problem(std::string_view problem, bool as_json = false);

} // namespace triax::app
