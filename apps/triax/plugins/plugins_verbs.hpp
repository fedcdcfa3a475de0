// SPDX-License-Identifier: Apache-2.0
// The subcommands of `triax plugins` that have separate files; each function adds one.
#pragma once

#include <CLI/CLI.hpp>

namespace triax::app {

void add_plugins_test(CLI::App& plugins, int& status);
void add_plugins_doctor(CLI::App& plugins, int& status);
void add_plugins_new(CLI::App& plugins, int& status);

} // namespace triax::app
