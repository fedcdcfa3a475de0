// SPDX-License-Identifier: Apache-2.0
// Flags that set options of a plugin without a run: --set comm.KEY=VALUE.
//
// Threads: the main thread. Errors: of CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "config/load.hpp"

namespace triax::app {

/// As `table` of add_settings(): the plugin's kind decides.
inline constexpr const char* kAnyTable = "TABLE";

/// Adds `--set table.KEY=VALUE`, or another flag of this form. Parsing the command line fills `settings`. `flag`: a
/// literal.
void add_settings(CLI::App& verb, const char* flag, std::vector<config::Override>& settings, const std::string& doc,
                  const std::string& table);

} // namespace triax::app
