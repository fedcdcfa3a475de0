// SPDX-License-Identifier: Apache-2.0
// The content of a run's folder, for `triax report`: also of a run that is in progress, has failed, or whose files are
// damaged. No plugin is loaded.
//
// Blocking: reads files. Errors: Error if the folder is not that of a run; other problems are notes of the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/step_record.hpp"
#include "report/timeline_file.hpp"
#include "train/memory_row.hpp"

namespace triax::app {

struct ReportedRun {
  std::string name; // as the user wrote it
  std::filesystem::path folder;
  std::vector<std::pair<std::string, std::string>> keys; // of resolved.toml, in its order, values as TOML
  std::vector<report::StepRecord> records;               // by step
  bool is_running = false;
  std::optional<std::int64_t> checkpoint;      // step of the newest complete one
  std::vector<train::MemoryRow> memory;        // planned, of rank 0; empty if not recorded
  std::vector<report::RankTimeline> timelines; // by rank; empty if not recorded
  std::string failure;                         // reason of the failure that ended the run; may be empty
  std::vector<std::string> notes;              // problems, a sentence each

  /// The value of a key as TOML; empty if it has none.
  std::string value(const std::string& key) const;
  /// train.steps, or 0.
  std::int64_t planned_steps() const;
  std::int64_t last_step() const { return records.empty() ? 0 : records.back().step; }
};

ReportedRun read_run(const std::string& folder);

/// Whether the folder is that of `triax compare`, which has two runs in it.
bool is_comparison(const std::filesystem::path& folder);

} // namespace triax::app
