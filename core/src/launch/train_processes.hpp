// SPDX-License-Identifier: Apache-2.0
// The launcher: trains a run with each of its ranks as a process of this machine, and tells how they are.
//
// Threads: one, the program's main thread: ranks die with it. Ownership: owns the processes and the job's server;
// borrows what ProcessTraining refers to. Blocking: for the length of the training. Errors: Error if a rank cannot be
// started, nothing can listen, or a rank sends a malformed message; then nothing is left running. A rank that fails, is
// lost, or has not joined after launch.start_timeout_s ends all of them within seconds; the log and failure.json say
// which it was and where the others were. Where this process itself was stopped for so long that the ranks gave up,
// they name the launcher and no rank.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/failure_report.hpp"
#include "report/start_progress.hpp"
#include "train/loop.hpp"

namespace triax::launch {

struct ProcessTraining {
  const config::RunConfig& run;
  /// Of this program, for a rank: "train", "run.toml", "--set", ...
  std::vector<std::string> arguments;
  const train::RunFolder& folder;
  Log& log;
  const train::StopSignals& signals;
  std::function<void(const report::StepRecord&)> step;                // of every step
  std::function<void(int rank, const std::string& line)> output = {}; // of what ranks write on stdout and stderr
  OnFailure failed = {};
  std::function<void(const report::StartState&)> starting = {}; // ten times a second until all ranks are ready
};

/// The result of rank 0 with the traffic of all ranks, or nothing if a rank failed.
std::optional<train::LoopResult> train_processes(const ProcessTraining& training);

} // namespace triax::launch
