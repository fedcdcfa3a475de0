// SPDX-License-Identifier: Apache-2.0
// Runs the ranks of `triax generate`: as threads of this process, as processes of this machine, or as one process of a
// job that a launcher has started.
//
// Threads: the program's main thread. Ownership: borrows its arguments. Blocking: until the texts end. Errors: printed,
// and in the exit status; Error if the launcher cannot start ranks.
#pragma once

#include <optional>
#include <string>

#include "evaluate/choice_scores.hpp"
#include "generate/prepared_text.hpp"
#include "launch/environment.hpp"
#include "os/stop_signals.hpp"

namespace triax::app {

/// The error if the ranks are processes that cannot get the prompt.
std::optional<config::Diagnostic> refused_for_processes(const GenerateArguments& arguments,
                                                        const PreparedText& prepared);

/// When a signal ends the work, for its message.
const char* end_of(const GenerateArguments& arguments);

/// Starts the ranks that `prepared.checked` has placed, and prints their texts.
int run_text(const GenerateArguments& arguments, const PreparedText& prepared, os::StopSignals& signals);

/// The job of ranks for `triax evaluate --choices`. Borrows `scores`.
train::ScoreJob score_job(const PreparedText& prepared, ChoiceScores& scores);

/// The checkpoint or the folder of transformers, for --json.
std::string shown_weights(const PreparedText& prepared);

/// `triax generate`, and `triax evaluate --choices`.
int run_generate(const GenerateArguments& arguments);

int generate_launched(const GenerateArguments& arguments, const launch::Environment& environment);

} // namespace triax::app
