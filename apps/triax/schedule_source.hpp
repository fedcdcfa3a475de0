// SPDX-License-Identifier: Apache-2.0
// What `triax schedule` and `triax simulate` are asked about: a scheduler and a shape, from a run's TOML or from flags,
// or a file that holds a schedule.
//
// Threads: one. Ownership: values. Blocking: reads files, loads the plugin. Errors: what the user wrote wrong becomes a
// refusal, never an exception.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/loaded.hpp"
#include "schedule/read_csv.hpp"
#include "triax/layout.hpp"
#include "triax/scheduler.hpp"

namespace triax::app {

struct ScheduleFlags {
  std::string scheduler;
  PipelineShape shape;
  std::vector<std::string> folders; // to look for it in first
};

/// What flags say of the shape; a file has its own, which must be the same.
struct GivenShape {
  std::optional<int> pipeline, chunks, microbatches;
};

struct ScheduleSource {
  config::PluginChoice scheduler; // of a file: its name alone
  std::optional<schedule::CsvFile> file;
  PipelineShape shape;
  schedule::Boundaries boundaries = schedule::Boundaries::whole;
  Layout layout = Layout::ptd(1, 1, 1);
  std::filesystem::path folder;              // of a run; else empty
  std::vector<config::ResolvedValue> values; // where refusals find positions
  std::vector<config::Refusal> refusals;     // if any, the rest says nothing
};

ScheduleSource source_from_run(const std::string& file, const std::vector<config::Override>& overrides);

/// Of the overrides, only keys of [schedule] mean something here.
ScheduleSource source_from_flags(const ScheduleFlags& flags, const std::vector<config::Override>& overrides);

ScheduleSource source_from_file(const std::string& file, const GivenShape& given);

/// On stderr: which file the scheduler is, if it shadows another one of its name.
void print_notes(const ScheduleSource& source);

} // namespace triax::app
