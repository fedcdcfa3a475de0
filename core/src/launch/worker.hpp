// SPDX-License-Identifier: Apache-2.0
// Trains one rank of a job of several processes in this process; or has it evaluate or generate text.
//
// Threads: the rank's main thread. Ownership: borrows what ProcessRank refers to. Blocking: until training ends.
// Errors: not thrown: an exception in the rank ends the job and is logged once (train_rank.hpp).
#pragma once

#include <optional>

#include "launch/failure_report.hpp"
#include "launch/job.hpp"
#include "train/generate_text.hpp"
#include "train/loop.hpp"

namespace triax::launch {

struct ProcessRank {
  const config::RunConfig& run;
  const Environment& environment;
  Job& job; // all ranks have passed Job::wait_for_start()
  int threads = 1;
  Log& log;
  const os::StopSignals& signals;
  train::Reports reports; // of rank 0; under Triax's launcher, steps and notes are also sent to the launcher
  const train::RunFolder* folder = nullptr; // for failure.json, in rank 0 if it runs the job server; else null
  OnFailure failed = {};
  const train::TextJob* text = nullptr; // for a run that generates
};

/// This rank's result; empty if a rank failed. In the rank that runs the job server, the result has the traffic of all
/// ranks. That rank also logs a failure and writes failure.json to the run's folder.
std::optional<train::LoopResult> run_worker(const ProcessRank& rank);

/// In rank 0 if it runs the job server: writes failure.json for a failure before run_worker(). Returns the failure,
/// or nothing if the server has none.
std::optional<control::Failure> write_failed_start(const config::RunConfig& run, const control::Server& server,
                                                   const train::RunFolder& folder, Log& log);

} // namespace triax::launch
