// SPDX-License-Identifier: Apache-2.0
// One function per subcommand; each adds its subcommand and callback to the program.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "config/load.hpp"

namespace triax::app {

/// Exit status. 0: success, and a check found no errors; 1: the subcommand ran and failed; 2: an error before anything
/// was started. `checkpoint diff`: 1 if they differ. 75: the run stopped before its last step and saved a checkpoint.
enum Status : int { kDone = 0, kFailed = 1, kRefused = 2, kUnfinished = 75 }; // 75: EX_TEMPFAIL of sysexits.h

/// Each callback stores its exit status in `status`. main prints errors that a callback throws.
void add_train(CLI::App& program, int& status);
void add_evaluate(CLI::App& program, int& status);
void add_generate(CLI::App& program, int& status);
void add_compare(CLI::App& program, int& status);
void add_report(CLI::App& program, int& status);
void add_check(CLI::App& program, int& status);
void add_fit(CLI::App& program, int& status);
void add_plan(CLI::App& program, int& status);
void add_checkpoint(CLI::App& program, int& status);
void add_import(CLI::App& program, int& status);
void add_export(CLI::App& program, int& status);
void add_schedule(CLI::App& program, int& status);
void add_simulate(CLI::App& program, int& status);
void add_plugins(CLI::App& program, int& status);
void add_data(CLI::App& program, int& status);
void add_bench(CLI::App& program, int& status);

/// Describes an argument that names a checkpoint.
inline constexpr const char* kCheckpointDoc =
    "checkpoint folder (step-N); or a run's folder or TOML file, for its newest checkpoint";

/// Adds `--set a.b=value`, for subcommands that read a run's TOML. Parsing the command line fills `overrides`.
void add_overrides(CLI::App& verb, std::vector<config::Override>& overrides);

} // namespace triax::app
