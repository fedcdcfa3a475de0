// SPDX-License-Identifier: Apache-2.0
// Prints errors to stderr, with control characters escaped.
//
// Blocking: writes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "config/load.hpp"
#include "triax/error.hpp"

namespace triax::app {

/// Prints to stderr. With `as_json`, also {"problem": ...} to stdout: for what goes wrong after a subcommand has begun,
/// if its result has no field for it. Errors before that are refused (common/refuse.hpp).
void print_problem(std::string_view problem, bool as_json = false);

/// Prints to stderr what may be a mistake, but stops nothing.
void print_warning(const Error& warning);

/// The number of errors to show out of `count`: one mistake in a large run can be refused once per rank and operation.
std::size_t shown_errors(std::size_t count);

/// Prints the first errors to stderr, and how many more there are.
void print_errors(const std::vector<config::Diagnostic>& errors);

} // namespace triax::app
