// SPDX-License-Identifier: Apache-2.0
// The logs of a run, and the checks before it starts: shared by the ways in which `triax train` runs.
//
// Threads: one. Ownership: values. Blocking: files; asking computes. Errors: Error naming the log that cannot be
// opened.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/loaded.hpp"
#include "report/run_log.hpp"
#include "train/loop.hpp"
#include "train/preflight_process.hpp"

namespace triax::app {

struct TrainArguments {
  std::string file;
  std::vector<config::Override> overrides;
  bool json = false;
};

/// Everything that is asked before a run starts.
train::CheckedRun ask(const config::RunConfig& run, const train::PreflightRequest& request);
std::vector<config::Refusal> refusals(const config::Loaded& loaded, const train::Preflight& checked);

/// Each rank of this process has a log in the run's folder; on stderr rank 0 speaks for all, and the others tell what
/// is wrong.
std::vector<std::unique_ptr<Log>> rank_logs(const config::RunConfig& run, int ranks);
/// Of the process that starts the ranks; they have logs of their own.
std::unique_ptr<Log> launcher_log(const config::RunConfig& run);

} // namespace triax::app
