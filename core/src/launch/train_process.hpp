// SPDX-License-Identifier: Apache-2.0
// One rank of a job of several processes, trained in this process.
//
// Threads: the rank's main thread. Ownership: borrows what ProcessRank refers to. Blocking: for the length of the
// training. Errors: none leave it: what a rank throws ends the job, and is told once (train_rank.hpp).
#pragma once

#include <optional>

#include "launch/failure_report.hpp"
#include "launch/job.hpp"
#include "train/loop.hpp"

namespace triax::launch {

struct ProcessRank {
  const config::RunConfig& run;
  const Environment& environment;
  Job& job; // its ranks are ready
  int threads = 1;
  Log& log;
  const train::StopSignals& signals;
  train::Reports reports;                   // of rank 0; under our launcher, steps and notes are sent to it besides
  const train::RunFolder* folder = nullptr; // in rank 0 where it serves; else null
  OnFailure failed = {};
};

/// This rank's result, or nothing if a rank failed. In the rank that serves the job's store: with the traffic of all
/// ranks, and what is told of a failure is in the log, and failure.json in the run's folder.
std::optional<train::LoopResult> train_process(const ProcessRank& rank);

/// In rank 0 where it serves: a failure before train_process(), for programs, in the run's folder. Returns it; nothing
/// if the server knows of none.
std::optional<control::Failure> write_failed_start(const config::RunConfig& run, const control::Server& server,
                                                   const train::RunFolder& folder, Log& log);

} // namespace triax::launch
