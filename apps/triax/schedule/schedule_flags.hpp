// SPDX-License-Identifier: Apache-2.0
// Flags that name a schedule: a run's TOML file, a scheduler and a shape, or a CSV file.
//
// Ownership: the arguments must outlive the parsing. Errors: CLI::ParseError.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "schedule/schedule_source.hpp"

namespace triax::app {

struct ScheduleArguments {
  std::string file; // RUN.toml; empty: flags
  ScheduleFlags flags;
  std::string csv; // F.csv; empty: one of the others
  std::vector<config::Override> overrides;
};

/// `run_doc`: help text of RUN.toml for this subcommand.
void add_schedule_source(CLI::App& verb, ScheduleArguments& arguments, const char* run_doc);

/// Which flags of a source are missing, as text; empty if none.
std::string missing_source(const CLI::App& verb);

/// After parsing: throws if none or several of run, file and scheduler are given.
ScheduleSource schedule_source(const CLI::App& verb, const ScheduleArguments& arguments);

/// The refusal with its position. If the source is flags, each key that a flag sets is named as that flag.
config::Diagnostic diagnose(const ScheduleSource& source, const Refusal& refusal);

} // namespace triax::app
