// SPDX-License-Identifier: Apache-2.0
// Starting ranks here: trains a run with all of its ranks as threads of this process.
//
// Threads: called by the thread that made the stop signals; it starts one thread a rank and waits for all of them.
// Ownership: borrows what LocalTraining refers to. Blocking: for the length of the training. Errors: what a rank throws
// ends all ranks within seconds and is logged once, by the rank that failed first; the others tell at debug level why
// they stopped.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "control/local_store.hpp"
#include "launch/failure_report.hpp"
#include "report/start_progress.hpp"
#include "train/loop.hpp"
#include "train/placement.hpp"

namespace triax::launch {

struct LocalTraining {
  const config::RunConfig& run;
  const train::Placement& placement;
  std::span<const std::unique_ptr<Log>> logs; // one per rank
  const train::StopSignals& signals;
  train::Reports reports; // of rank 0
  /// What differs from the run's TOML; threads and abort flag are set here. Called on the rank's thread.
  std::function<train::RankOptions(int rank)> options = {};
  control::LocalStore* store = nullptr; // that the ranks meet in; null: one of their own
  OnFailure failed = {};
  const train::RunFolder* folder = nullptr;                     // that failures are reported in; null: none is
  std::function<void(const report::StartState&)> starting = {}; // ten times a second until all ranks are ready
};

/// The result of rank 0 with the traffic of all ranks, or nothing if a rank failed.
std::optional<train::LoopResult> train_here(const LocalTraining& training);

} // namespace triax::launch
