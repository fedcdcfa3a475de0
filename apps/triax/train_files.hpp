// What a run writes into, and what is asked before it starts: shared by the ways in which `triax train` runs.
//
// Threads: one. Ownership: RunFiles owns what it opened. Blocking: files; asking computes. Errors: Error naming the
// file that cannot be written.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/loaded.hpp"
#include "report/metrics_file.hpp"
#include "report/run_log.hpp"
#include "train/loop.hpp"
#include "train/preflight.hpp"

namespace triax::app {

struct TrainArguments {
  std::string file;
  std::vector<config::Override> overrides;
};

/// Everything that is asked before a run starts.
train::Preflight ask(const config::RunConfig& run, const train::Placement& placement,
                     const train::AskedDevices& devices);
std::vector<config::Refusal> refusals(const config::Loaded& loaded, const train::Preflight& checked);

/// Each rank of this process has a log in the run's folder; on stderr rank 0 speaks for all, and the others tell what
/// is wrong.
std::vector<std::unique_ptr<Log>> rank_logs(const config::RunConfig& run, int ranks);
/// Of the process that starts the ranks; they have logs of their own.
std::unique_ptr<Log> launcher_log(const config::RunConfig& run);

/// The folder, which is this run's for as long as this lives, and its metrics.
struct RunFiles {
  explicit RunFiles(const config::Loaded& loaded);
  std::unique_ptr<train::FolderLock> folder;
  report::MetricsFile metrics;
};

} // namespace triax::app
