// SPDX-License-Identifier: Apache-2.0
// Defines the subcommands and flags. The program parses its arguments with this definition; manual pages and shell
// completions are generated from it.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace triax::app {

/// All subcommands with their flags. Parsing runs a subcommand, which stores its exit status in `status`.
std::unique_ptr<CLI::App> make_command_line(int& status);

} // namespace triax::app
