// SPDX-License-Identifier: Apache-2.0
// Trains a run with all ranks as threads of this process; or evaluates, or generates text.
//
// Threads: called by the thread that created the stop signals; starts one thread per rank and waits for all. Ownership:
// borrows what LocalTraining refers to. Blocking: until training ends. Errors: an exception in a rank ends all ranks
// within seconds. The rank that failed first logs it; the others log at debug level why they stopped.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "control/job_local_store.hpp"
#include "launch/failure_report.hpp"
#include "report/start_progress.hpp"
#include "train/generate_text.hpp"
#include "train/loop.hpp"
#include "train/rank_placement.hpp"

namespace triax::launch {

struct LocalTraining {
  const config::RunConfig& run;
  const train::Placement& placement;
  std::span<const std::unique_ptr<Log>> logs; // one per rank
  const os::StopSignals& signals;
  train::Reports reports; // of rank 0
  /// Options beyond the run's TOML; threads, local rank and abort flag are set here. Called on the rank's thread.
  std::function<train::RankOptions(int rank)> options = {};
  control::LocalStore* store = nullptr; // store of the ranks; null: creates one
  OnFailure failed = {};
  const train::RunFolder* folder = nullptr;                     // for failure reports; null: none are written
  std::function<void(const report::StartState&)> starting = {}; // ten times a second until all ranks are ready
  /// Called on the caller's thread if ranks do not end soon after a signal that came before the end of the first step.
  /// The process then ends with the status that this returns. Empty: waits for the ranks.
  std::function<int(const train::LoopResult&)> ends_at_start = {};
  const train::TextJob* text = nullptr; // for a run that generates
};

/// The result of rank 0 with the traffic of all ranks; empty if a rank failed.
std::optional<train::LoopResult> run_threads(const LocalTraining& training);

} // namespace triax::launch
