// SPDX-License-Identifier: Apache-2.0
// The flags with which verbs are told of a schedule: a run's TOML, a scheduler and a shape, or a CSV file.
//
// Threads: one. Ownership: values; the arguments must outlive the parsing. Blocking: never. Errors: CLI::ParseError.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "schedule_source.hpp"

namespace triax::app {

struct ScheduleArguments {
  std::string file; // RUN.toml; empty: flags
  ScheduleFlags flags;
  std::string csv; // F.csv; empty: the others
  std::vector<config::Override> overrides;
};

/// `run_doc`: what RUN.toml is to the verb.
void add_schedule_source(CLI::App& verb, ScheduleArguments& arguments, const char* run_doc);

/// Which flags a source lacks of what was parsed, in words; empty: none.
std::string missing_source(const CLI::App& verb);

/// Of what was parsed: refuses a mixture of run, file and scheduler, and none.
ScheduleSource schedule_source(const CLI::App& verb, const ScheduleArguments& arguments);

} // namespace triax::app
