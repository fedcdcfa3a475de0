// SPDX-License-Identifier: Apache-2.0
// The run's folder: locked and tried before anything starts; what an earlier run left in it is moved aside only after
// all ranks of this run have joined.
//
// Threads: one. Ownership: RunFolder owns the lock; RunRecords owns the metrics file and borrows run and log. Blocking:
// files. Errors: the constructor of RunFolder and begin() throw Error naming the file; nothing later does.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "config/run_config.hpp"
#include "report/metrics_file.hpp"
#include "train/folder_lock.hpp"
#include "triax/log.hpp"

namespace triax::train {

/// In the process that the user or a launcher started: this run's folder for as long as the object lives.
class RunFolder {
 public:
  /// Creates the folder, locks it, and writes a temporary file there and beside the metrics. No file of an earlier run
  /// is changed. Throws Error naming the file that cannot be written, or the folder if another run has it.
  RunFolder(const config::RunConfig& run, const std::string& resolved_toml);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Where a failure is reported: failure.json once rank 0's begin() has made the folder this run's, until then
  /// failed-start.json, since failure.json may be an earlier run's.
  std::filesystem::path failure_file() const;

 private:
  std::filesystem::path folder_;
  FolderLock lock_;
  struct Identity;
  std::unique_ptr<const Identity> resolved_before_; // of resolved.toml
};

/// Of rank 0, in its process: what a run records in its folder.
class RunRecords {
 public:
  RunRecords(const config::RunConfig& run, std::string resolved_toml, Log& log);

  /// Called once all ranks have joined. Moves the files of an earlier run aside (metrics.jsonl to metrics-1.jsonl, and
  /// so on), writes resolved.toml and opens the metrics. Returns a line that says what was moved; empty if nothing was.
  std::string begin();
  /// Adds a record. One that the file does not take is counted in missing(); the log says why, once per cause.
  void write(const report::StepRecord& record);
  /// Looks whether the metrics were deleted or moved.
  void check();

  /// Where the metrics are now.
  std::filesystem::path metrics() const;
  std::int64_t records() const; // that were to be written
  std::int64_t missing() const; // of these

 private:
  const config::RunConfig& run_;
  const std::string resolved_toml_;
  Log& log_;
  std::optional<report::MetricsFile> metrics_;
};

} // namespace triax::train
