// SPDX-License-Identifier: Apache-2.0
// Arguments, preflight and logs of a run, shared by the ways in which `triax train` and `triax evaluate` run.
//
// Blocking: writes files; ask() computes. Errors: Error with a log that cannot be opened.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "os/supervised_process.hpp"
#include "report/run_log.hpp"
#include "train/loop.hpp"
#include "train/preflight_process.hpp"

namespace triax::app {

/// With --max-restarts.
struct Restart {
  int number = 0; // number of earlier starts that failed
  int max = 0;
  std::string reason;                     // of the last failure; empty in the first start
  Clock::time_point began = Clock::now(); // of the first start: train.time_limit is for all of them
};

struct TrainArguments {
  std::string file;
  std::vector<config::Override> overrides;
  bool json = false;
  bool evaluates = false;      // `triax evaluate`
  std::string checkpoint = {}; // to evaluate; empty: the run's newest
  Restart restart = {};
  os::SupervisedProcess* supervised = nullptr; // this process, if another one can start the run again
};

/// Loads the run, to train or to evaluate.
config::LoadResult load_run(const TrainArguments& arguments, std::optional<int> world = {},
                            plugin::FirstLoad first_load = plugin::FirstLoad::probed);

/// Trains or evaluates: with ranks as threads or processes of this machine, or as one rank that a launcher has started.
/// Returns the exit status.
int run_ranks(const TrainArguments& arguments);

/// All checks before a run starts.
train::CheckedRun ask(const config::RunConfig& run, const train::PreflightRequest& request);
std::vector<config::Diagnostic> refusals(const config::LoadResult& loaded, const train::Preflight& checked);

/// One log per rank of this process, in the run's folder unless the run evaluates. Only rank 0 logs everything to
/// stderr; the others log warnings and errors.
std::vector<std::unique_ptr<Log>> rank_logs(const config::RunConfig& run, int ranks);
/// The log of one rank.
std::unique_ptr<Log> rank_log(const config::RunConfig& run, int rank, const report::OnStderr& on_stderr);
/// The log of a process that starts rank processes, which have their own logs.
std::unique_ptr<Log> launcher_log(const config::RunConfig& run);

} // namespace triax::app
