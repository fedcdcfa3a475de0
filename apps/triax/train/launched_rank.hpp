// SPDX-License-Identifier: Apache-2.0
// One rank of a job of several processes, whatever the job does: it joins, the ranks agree whether the job starts, and
// failures of the start are reported once. Rank 0 prints the errors of the run. Another rank prints only errors that
// differ from rank 0's, such as a file that is missing on its machine. If there are errors, no rank starts.
//
// Threads: the program's main thread; end_at_once(): any. Ownership: borrows the environment. Blocking: run(), until
// the job ends. Errors: printed, and in the exit status.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "launch/job.hpp"
#include "launch/worker.hpp"
#include "os/cpu_quota.hpp"
#include "report/start_progress.hpp"
#include "train/rank_placement.hpp"
#include "train/run_folder.hpp"

namespace triax::app {

class LaunchedRank {
 public:
  explicit LaunchedRank(const launch::Environment& environment)
      : environment_(environment),
        ours_(environment.launcher == launch::Launcher::triax),
        placement_{environment.local_world, os::available_cores(), false} {}
  virtual ~LaunchedRank() = default;
  LaunchedRank(const LaunchedRank&) = delete;
  LaunchedRank& operator=(const LaunchedRank&) = delete;

  /// Returns the exit status.
  int run();

 protected:
  /// Loads the run. Errors are in the result.
  virtual config::LoadResult load() = 0;
  /// In the rank that reports errors: checks what load() has left, and opens files. Reports errors with refuse().
  virtual void check() = 0;
  /// Keys beyond those of the run's TOML that must be equal on all ranks.
  virtual void add_keys(std::map<std::string, std::string>& keys) const = 0;
  /// The rank's work, once all ranks have agreed. Returns the exit status.
  virtual int work(launch::Job& job, os::StopSignals& signals) = 0;
  /// Prints the result of --json as well, if it is wanted. Returns the exit status.
  virtual int print_refused(const std::vector<config::Diagnostic>& refusals) const = 0;
  virtual void print_failed(int rank, const std::string& why) const = 0;
  virtual bool wants_json() const = 0;
  /// The object of --json if a signal ends the process before the work.
  virtual std::string ended_before(int signal) const = 0;
  /// The process is about to end without destructors. Any thread.
  virtual void end_at_once(int signal) const = 0;
  /// For failure.json; null: the job has no files.
  virtual const train::RunFolder* folder() const { return nullptr; }

  void refuse(const std::vector<config::Diagnostic>& refusals);
  bool is_refused() const { return !refused_.empty(); }
  /// Rank 0 under an external launcher prints for all. Triax's launcher has run the checks before it started ranks.
  bool is_reporter() const { return environment_.rank == 0 && !ours_; }
  /// Triax's launcher has probed the plugins. Under other launchers, ranks start in any order, and their machines may
  /// have different libraries.
  plugin::FirstLoad first_load() const { return ours_ ? plugin::FirstLoad::direct : plugin::FirstLoad::probed; }
  const launch::Environment& environment() const { return environment_; }
  bool is_ours() const { return ours_; }
  const train::Placement& placement() const { return placement_; }
  const config::LoadResult& loaded() const { return loaded_; }
  const config::RunConfig& run_config() const { return *loaded_.run; }

 private:
  int run(launch::Job& job, os::StopSignals& signals);
  int fail(launch::Job& job, const Error& error);
  void report_failure(launch::Job& job) const;
  int refuse_start(const std::string& refusal) const;
  std::map<std::string, std::string> keys() const;
  /// Triax's launcher adds the rank to each line.
  std::string rank_text() const { return ours_ ? std::string() : text("rank {}: ", environment_.rank); }
  double stall_timeout_s() const { return loaded_.run ? loaded_.run->train.stall_timeout_s : 600; }
  launch::StartReports start_reports();

  const launch::Environment& environment_;
  const bool ours_;
  const train::Placement placement_;
  config::LoadResult loaded_;
  std::vector<config::Diagnostic> refusals_;
  std::string refused_;                                               // joined by newlines
  report::StartProgress start_ = report::StartProgress::for_stderr(); // until all ranks are ready
};

} // namespace triax::app
