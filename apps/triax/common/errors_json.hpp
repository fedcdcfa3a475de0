// SPDX-License-Identifier: Apache-2.0
// Errors as JSON, for `--json`.
//
// Threads: any.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "config/loaded.hpp"

namespace triax::app {

/// [{"code", "keys", "file", "line", "column", "message", "hint"}, ...]: file, line and column are null for an error
/// without a position, and line and column for a flag.
nlohmann::ordered_json errors_json(const std::vector<config::Diagnostic>& errors);

} // namespace triax::app
