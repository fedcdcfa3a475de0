// SPDX-License-Identifier: Apache-2.0
// Telling what went wrong: words on stderr, fit for a terminal whatever is in them; with --json also the one object of
// stdout.
//
// Threads: one. Ownership: values. Blocking: writes. Errors: none.
#pragma once

#include <string_view>

namespace triax::app {

/// On stderr. With `as_json`, for a verb that has no result to tell it in, also {"problem": ...} on stdout.
void print_problem(std::string_view problem, bool as_json = false);

} // namespace triax::app
