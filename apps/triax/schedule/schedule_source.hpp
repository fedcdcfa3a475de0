// SPDX-License-Identifier: Apache-2.0
// The schedule that `triax schedule` and `triax simulate` work on: a scheduler and a shape, from a run's TOML or from
// flags, or a file with a schedule.
//
// Blocking: reads files, loads the plugin. Errors: errors of the user are in ScheduleSource::refusals, not thrown.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "csv/read_csv.hpp"
#include "triax/layout.hpp"
#include "triax/scheduler.hpp"

namespace triax::app {

struct ScheduleFlags {
  std::string scheduler;
  PipelineShape shape;
  bool has_chunks = false;          // given, not the default
  std::vector<std::string> folders; // searched first
};

/// Shape flags; a file has its own shape, which they must match.
struct GivenShape {
  std::optional<int> pipeline, chunks, microbatches;
};

struct ScheduleSource {
  config::PluginChoice scheduler; // for a file, only its name
  std::optional<schedule::CsvFile> file;
  PipelineShape shape;
  schedule::Boundaries boundaries = schedule::Boundaries::whole;
  schedule::Sharding sharding = schedule::Sharding::none;
  int prefetch = schedule::kDefaultPrefetch;
  Layout layout = Layout::ptd(1, 1, 1);
  std::filesystem::path folder;              // of a run; else empty
  std::vector<config::ResolvedValue> values; // positions for error messages; of flags, by the names of the flags
  bool is_from_flags = false;
  std::vector<config::Diagnostic> refusals; // if not empty, the other members are not valid
};

ScheduleSource source_from_run(const std::string& file, const std::vector<config::Override>& overrides);

/// Only keys of [schedule] have an effect in `overrides`.
ScheduleSource source_from_flags(const ScheduleFlags& flags, const std::vector<config::Override>& overrides);

ScheduleSource source_from_file(const std::string& file, const GivenShape& given);

/// Prints to stderr which file the scheduler is, if it shadows another one of its name.
void print_notes(const ScheduleSource& source);

} // namespace triax::app
