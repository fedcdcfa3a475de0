// SPDX-License-Identifier: Apache-2.0
// One function per verb of the command line; each adds its subcommand and what it does to the program.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "config/loaded.hpp"

namespace triax::app {

/// Exit status: 0 done, and the question asked was answered yes; 1 it ran and failed; 2 refused, nothing was started.
enum Status : int { kDone = 0, kFailed = 1, kRefused = 2 };

/// Each callback stores its exit status in `status`. Errors thrown by a callback are printed once, by main.
void add_train(CLI::App& program, int& status);
void add_check(CLI::App& program, int& status);
void add_schedule(CLI::App& program, int& status);
void add_simulate(CLI::App& program, int& status);
void add_plugins(CLI::App& program, int& status);
void add_data(CLI::App& program, int& status);

/// Adds `--set a.b=value`, for verbs that read a run's TOML. `overrides` is filled while the command line is parsed.
void add_overrides(CLI::App& verb, std::vector<config::Override>& overrides);

/// Prints all refusals on stderr, one below the other.
void print_refusals(const std::vector<config::Refusal>& refusals);

} // namespace triax::app
