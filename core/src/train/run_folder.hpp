// SPDX-License-Identifier: Apache-2.0
// The run's folder. It is locked and tested before the run starts. Files of an earlier run are moved aside only after
// all ranks of this run have joined.
//
// Ownership: RunFolder owns the lock; RunRecords owns the metrics file and borrows run and log. Blocking: writes files.
// Errors: the constructor of RunFolder, begin() and rewind() throw Error with the file; other functions do not throw.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "os/folder_lock.hpp"
#include "report/event_file.hpp"
#include "report/metrics_file.hpp"
#include "train/memory_row.hpp"
#include "triax/log.hpp"

namespace triax::train {

/// In the process that the user or a launcher started: reserves the folder for this run while the object exists.
class RunFolder {
 public:
  /// Creates the folder, locks it, and writes temporary files in it and beside the metrics file. Does not change files
  /// of an earlier run. Throws Error with a file that cannot be written, or with the folder if another run has it.
  RunFolder(const config::RunConfig& run, const std::string& resolved_toml);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// The file for a failure report: failure.json after rank 0's begin(); before that failed-start.json, because
  /// failure.json may belong to an earlier run. If the folder was moved, the file is in the moved folder; its old path
  /// may belong to another run.
  std::filesystem::path failure_file() const;

 private:
  std::filesystem::path folder_;
  os::FolderLock lock_;
  struct Identity;
  std::unique_ptr<const Identity> resolved_before_; // of resolved.toml
};

/// In the process of rank 0: the files that a run writes to its folder.
class RunRecords {
 public:
  RunRecords(const config::RunConfig& run, std::string resolved_toml, Log& log);

  /// Call it once all ranks have joined. Moves the files of an earlier run aside (metrics.jsonl to metrics-1.jsonl, and
  /// so on), writes resolved.toml and opens the metrics file. `done`: steps of the run that this start continues; their
  /// records stay in the metrics file. If it has records of later steps, which are trained again, the whole file is
  /// also kept aside. If `done` is 0, checkpoints of an earlier run are moved aside too. Returns a line that says what
  /// was moved; empty if nothing was.
  /// `memory`: of rank 0, which memory.json records; empty: no file.
  std::string begin(std::int64_t done = 0, const std::vector<MemoryRow>& memory = {});
  /// After begin(), if the run goes back to the step `done`: records of later steps leave the metrics file, and the
  /// whole file is kept as metrics-N.jsonl. Returns a line that says so; empty if there are none. Throws Error with the
  /// file, and then writes to it as before.
  std::string rewind(std::int64_t done);
  /// Whether the last record of the metrics file is of this step and has no evaluation. Also before begin().
  bool lacks_evaluation(std::int64_t step) const;
  /// After begin(): adds the evaluation of `record` to the last record, which is of this step. Throws Error with the
  /// file, which is then unchanged.
  void add_evaluation(const report::StepRecord& record);
  /// Appends a record. If it cannot be written, missing() counts it, and the log gives the reason, once per cause.
  void write(const report::StepRecord& record);
  /// Checks whether the metrics file was deleted or moved.
  void check();

  /// The current metrics file.
  std::filesystem::path metrics() const;
  std::int64_t records() const;        // number of records that should be written
  std::int64_t missing() const;        // number of these that are not in the file
  std::int64_t missing_events() const; // of log.tensorboard

 private:
  void open(std::filesystem::path file); // a copy: it may be of the metrics file that is replaced
  void open_again();
  void open_events(std::filesystem::path folder, std::int64_t done);
  void write_memory(const std::vector<MemoryRow>& memory);
  os::AppendFile::Observer observer();

  const config::RunConfig& run_;
  const std::string resolved_toml_;
  Log& log_;
  std::optional<report::MetricsFile> metrics_;
  std::optional<report::EventFile> events_;                                             // with log.tensorboard
  std::int64_t earlier_records_ = 0, earlier_missing_ = 0, earlier_missing_events_ = 0; // before a rewind
};

} // namespace triax::train
