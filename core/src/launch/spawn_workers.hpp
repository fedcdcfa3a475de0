// SPDX-License-Identifier: Apache-2.0
// The launcher: trains a run with each rank as a process of this machine, and reports their state; or has the ranks
// evaluate or generate text.
//
// Threads: the program's main thread; if it ends, the kernel kills the ranks. Ownership: owns the processes and the job
// server; borrows what ProcessTraining refers to. Blocking: until training ends. Errors: Error if a rank cannot be
// started, the server cannot listen, or a rank sends a malformed message; then all ranks are ended. If a rank fails, is
// lost, or has not joined after launch.start_timeout_s, all ranks end within seconds. The log and failure.json name
// that rank and the positions of the others. If this process was stopped for so long that the ranks stopped, they name
// the launcher instead of a rank.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/failure_report.hpp"
#include "report/start_progress.hpp"
#include "train/generate_text.hpp"
#include "train/loop.hpp"

namespace triax::launch {

struct ProcessTraining {
  const config::RunConfig& run;
  /// Arguments of this program for a rank: "train", "run.toml", "--set", ...
  std::vector<std::string> arguments;
  const train::RunFolder* folder = nullptr; // for failure.json; null: none is written
  Log& log;
  const os::StopSignals& signals;
  std::function<void(const report::StepRecord&)> step;                // called for every step
  std::function<void(int rank, const std::string& line)> output = {}; // a line that a rank wrote to stdout or stderr
  OnFailure failed = {};
  std::function<void(const report::StartState&)> starting = {}; // ten times a second until all ranks are ready
  /// For a run that generates: gets rank 0's texts and scores, and has the prompt that the arguments give the ranks.
  /// Else null.
  const train::TextJob* text = nullptr;
};

/// The result of rank 0 with the traffic of all ranks; empty if a rank failed.
std::optional<train::LoopResult> spawn_workers(const ProcessTraining& training);

} // namespace triax::launch
