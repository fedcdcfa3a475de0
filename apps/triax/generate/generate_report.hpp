// SPDX-License-Identifier: Apache-2.0
// Reports the end of `triax generate`: lines for the user on stderr, or with --json one object on stdout.
//
// Threads: one; failed(): any. Ownership: borrows its arguments. Blocking: writes.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "common/verbs.hpp"
#include "evaluate/choice_scores.hpp"
#include "generate/generate_arguments.hpp"
#include "train/generate_text.hpp"

namespace triax::app {

/// The result of generating texts.
struct GenerateOutcome {
  std::string checkpoint;
  std::string prompt;
  std::optional<train::Answer> answer = {}; // to the last prompt
  const ChoiceScores* scores = nullptr;     // set by `triax evaluate --choices`
};

/// "5 prompt tokens in 0.2 s (25 tokens/s), 40 new tokens in 2 s (20 tokens/s)".
std::string speed_line(const train::Answer& answer);

class GenerateReport {
 public:
  explicit GenerateReport(const GenerateArguments& arguments) : arguments_(arguments) {}

  /// Nothing was started. Returns the exit status, as do the other functions.
  int refused(const std::vector<config::Diagnostic>& refusals) const;
  /// A rank failed and has logged why; -1: no rank. Only the first call prints the object of --json.
  int failed(int rank, const std::string& why, int status = kFailed) const;
  /// `signal`: that ended the texts, or 0.
  int ended(const GenerateOutcome& outcome, int signal) const;
  /// The object that --json prints if a signal ends the process at once.
  std::string ended_at_once(int signal) const;
  /// Prints that, unless an object was printed. Any thread.
  void end_at_once(int signal) const;

 private:
  const GenerateArguments& arguments_;
  mutable std::atomic_flag has_printed_; // the object of --json
};

} // namespace triax::app
