// SPDX-License-Identifier: Apache-2.0
// Errors as JSON, for `--json`.
//
// Threads: any.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/load.hpp"

namespace triax::app {

/// Sets "errors" to [{"code", "keys", "file", "line", "column", "message", "hint"}, ...]. "file", "line" and "column"
/// are null if the error has no position. If a value came from a flag such as --set, "file" is the flag, and "line" and
/// "column" are null. Only the first errors are shown; "more_errors"
/// is the number of the others, if there are any.
void add_errors(nlohmann::ordered_json& out, const std::vector<config::Diagnostic>& errors);
/// {"errors": [...]} as one line.
std::string errors_line(const std::vector<config::Diagnostic>& errors);

} // namespace triax::app
