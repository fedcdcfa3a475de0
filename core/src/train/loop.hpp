// SPDX-License-Identifier: Apache-2.0
// The training loop as each rank runs it: steps, evaluation, metrics, stopping.
//
// Threads: the rank's main thread. Ownership: borrows its arguments. Blocking: for the length of the training.
// Errors: Error of a step or of the data; those of the loop name the step. Files that cannot be written do not end the
// training: LoopResult::missing counts what they lack.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "report/missing.hpp"
#include "train/rank.hpp"
#include "train/run_folder.hpp"
#include "train/stop_signals.hpp"

namespace triax::train {

/// Where the log of a rank goes.
std::filesystem::path log_file(const config::RunConfig& run, int rank);

struct LoopResult {
  std::int64_t steps = 0;
  double first_loss = 0, last_loss = 0;
  std::optional<double> eval_loss;           // of the last evaluation
  double tokens_per_s = 0;                   // over all steps, evaluation left out
  int signal = 0;                            // that ended it early, or 0
  std::vector<report::GroupTraffic> traffic; // of this rank, one entry per group
  std::int64_t skipped = 0;                  // of the steps
  std::string metrics = {};                  // of rank 0: where they are; empty if the run did not begin a step
  std::int64_t records = 0;                  // of metrics, that were to be written
  report::Missing missing = {};              // what the run's folder did not take
};

/// Who is told of the steps. Rank 0's losses and times are the run's, so it alone has somebody to tell.
struct Reports {
  RunRecords* records = nullptr;                            // may be null
  std::function<void(const report::StepRecord&)> step = {}; // of every step, also those without a line of metrics
  std::function<void(const std::string&)> note = {};        // of a line for the user, before the first step
};

/// Once all ranks have joined, begins the records. Trains to train.steps, or until a signal has come to one of the
/// ranks. Writes a record each log.every steps, on steps that evaluate, and on the last; evaluates each eval.every
/// steps and on the last. When it is to stop, no evaluation is begun, and one under way ends after its batch: the step
/// is recorded without. All ranks of a run do the same at the same places.
LoopResult run_loop(const config::RunConfig& run, Rank& rank, const StopSignals& signals, const Reports& reports);

} // namespace triax::train
