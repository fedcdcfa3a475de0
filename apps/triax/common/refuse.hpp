// SPDX-License-Identifier: Apache-2.0
// Ends a subcommand that was refused before it began.
//
// Threads: the main thread. Blocking: writes.
#pragma once

#include <string>
#include <vector>

#include "common/verbs.hpp"
#include "config/load.hpp"

namespace triax::app {

/// Refusals that name flags, which have no position in a file.
std::vector<config::Diagnostic> diagnostics_of(const Refusals& refusals);

/// Prints the errors to stderr; with `as_json`, also one JSON object to stdout. Returns the exit status.
int refuse(const std::vector<config::Diagnostic>& errors, bool as_json, int status = kRefused);
inline int refuse(const Refusals& refusals, bool as_json) {
  return refuse(diagnostics_of(refusals), as_json);
}
/// An error of the file or folder that the argument `key` names.
inline int refuse(ErrorCode code, const Error& error, const std::string& key, bool as_json) {
  return refuse(std::vector{config::file_diagnostic(code, error, key)}, as_json);
}

} // namespace triax::app
