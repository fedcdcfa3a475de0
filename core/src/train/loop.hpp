// SPDX-License-Identifier: Apache-2.0
// The training loop of each rank: steps, evaluation, metrics, stopping.
//
// Threads: the rank's main thread. Blocking: until training ends. Errors: Error of a step or of the data, with the
// step. Files that cannot be written do not end training: LoopResult::missing counts what is missing in them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "os/stop_signals.hpp"
#include "report/missing.hpp"
#include "train/checkpoints.hpp"
#include "train/run_folder.hpp"
#include "train/training_rank.hpp"
#include "train/turns.hpp"

namespace triax::train {

/// The log file of a rank.
std::filesystem::path log_file(const config::RunConfig& run, int rank);

struct LoopResult {
  std::int64_t steps = 0;                    // of this start of the run
  std::int64_t last_step = 0;                // the last one that is done, also by earlier starts
  double first_loss = 0, last_loss = 0;      // that are finite
  std::optional<double> eval_loss;           // of the last evaluation
  double tokens_per_s = 0;                   // over all steps, without evaluation
  int signal = 0;                            // the signal that ended the run early, or 0
  bool out_of_time = false;                  // train.time_limit ended the run early
  std::vector<report::GroupTraffic> traffic; // of this rank, one entry per group
  std::int64_t skipped = 0;                  // number of skipped steps
  std::string metrics = {};                  // of rank 0: the metrics file; empty if the run did not begin a step
  std::int64_t records = 0;                  // number of metrics records that should be written
  report::Missing missing = {};              // what could not be written to the run's folder
  /// The newest complete checkpoint, also of earlier starts; of ranks other than 0, the last that they wrote a part of.
  std::string checkpoint = {};
  bool owes_evaluation = false;                   // a stop has left out that of the last step
  std::int64_t eval_samples = 0, eval_tokens = 0; // of run_evaluation()
  std::int64_t eval_bytes = 0;                    // of text that these tokens stand for; 0: not known
  bool is_saved() const;                          // the last step is in `checkpoint`
  bool has_loss() const { return steps > skipped || first_loss != 0; }
};

/// Receivers of step results. Only rank 0 has them, because its losses and times are those of the run.
struct Reports {
  RunRecords* records = nullptr;                            // may be null
  std::function<void(const report::StepRecord&)> step = {}; // called for every step, also without a metrics record
  std::function<void(const std::string&)> note = {};        // called with lines for the user
  Clock::time_point began = Clock::now();                   // from when train.time_limit counts
  /// Called before the evaluation after a step: its failure does not lose the step's record. May be empty.
  std::function<void(std::int64_t step)> evaluating = {};
  /// Called when training continues after an earlier step: at the start of a run that was resumed, and after a rewind.
  /// May be empty.
  std::function<void(std::int64_t step)> continuing = {};
  /// Called before the first prompt of a run that generates: from now on, a signal ends it after a token. May be empty.
  std::function<void()> generating = {};
};

/// Begins the records once all ranks have joined. Trains to train.steps or train.stop_at, or until a rank has
/// received a signal or train.time_limit is near; a signal at the end of a step, or during a recorded one, ends the
/// run after the next step. Saves checkpoints with `checkpoints`, which may be null, when they are due, and when the
/// run ends. Does what train.nonfinite says if a value is not finite. Writes a record every log.every steps, for steps
/// with an evaluation, and for the last. Evaluates every eval.every steps and after the last. If the run must stop, no
/// evaluation is started, and one in progress ends after its batch; the step is then recorded without it. All ranks of
/// a run take the same decisions at the same points. With `turns`, which may be null, steps wait for their turn, and
/// the end that it gives saves no checkpoint.
LoopResult run_loop(const config::RunConfig& run, Rank& rank, const os::StopSignals& signals, const Reports& reports,
                    Checkpoints* checkpoints = nullptr, Turns* turns = nullptr);

} // namespace triax::train
