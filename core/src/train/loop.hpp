// The training loop as each rank runs it: steps, evaluation, metrics, stopping; and the run's folder.
//
// Threads: the rank's main thread. Ownership: borrows its arguments. Blocking: for the length of the training.
// Errors: Error of a step, of the data or of a file; those of the loop name the step.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "report/metrics_file.hpp"
#include "train/folder_lock.hpp"
#include "train/rank.hpp"
#include "train/stop_signals.hpp"

namespace triax::train {

/// Makes the run's folder and writes resolved.toml into it. The folder is this run's as long as the result lives.
/// Throws Error naming the file that cannot be written, or the folder if another run has it.
std::unique_ptr<FolderLock> open_run_folder(const config::RunConfig& run, const std::string& resolved_toml);

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
};

/// Who is told of the steps. Rank 0's losses and times are the run's, so it alone has somebody to tell.
struct Reports {
  report::MetricsFile* metrics = nullptr;                   // may be null
  std::function<void(const report::StepRecord&)> step = {}; // of every step, also those without a line of metrics
};

/// Trains to train.steps, or until a signal has come to one of the ranks. Writes a record each log.every steps, on
/// steps that evaluate, and on the last; evaluates each eval.every steps and on the last. When it is to stop, no
/// evaluation is begun, and one under way ends after its batch: the step is recorded without. All ranks of a run do the
/// same at the same places.
LoopResult run_loop(const config::RunConfig& run, Rank& rank, const StopSignals& signals, const Reports& reports);

} // namespace triax::train
