// SPDX-License-Identifier: Apache-2.0
// Evaluates held-out data: between training steps, and alone with the weights of a checkpoint.
//
// Threads: the rank's main thread. Blocking: until the evaluation ends. Errors: Error of a pass or of the data.
#pragma once

#include <cstdint>
#include <functional>

#include "os/stop_signals.hpp"
#include "train/loop.hpp"

namespace triax::train {

/// The mean loss over held-out samples [0, samples). Ends after the batch for which a rank's request is not 0. After
/// each batch, calls `evaluated`, if it is not empty, with the number of samples.
Rank::Evaluated evaluate_samples(Rank& rank, std::int64_t samples, const executor::Request& request,
                                 const std::function<void(std::int64_t done)>& evaluated = {});

/// Runs a rank of `triax evaluate`, instead of run_loop(): evaluates data.validation with the weights that
/// `checkpoints` has restored. On eval.batches global batches, as training does; if it is 0, once on every sample.
/// A signal ends it early, without a loss. `number`: of the rank.
LoopResult run_evaluation(const config::RunConfig& run, int number, Rank& rank, const os::StopSignals& signals,
                          const Reports& reports, const Checkpoints& checkpoints);

} // namespace triax::train
