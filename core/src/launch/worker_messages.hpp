// SPDX-License-Identifier: Apache-2.0
// Messages from ranks to the process of the job server: steps and result from rank 0, traffic from all ranks.
//
// Errors: the read functions throw Error for other text.
//
// Numbers read back to the same bits. Only processes of the same build exchange these lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/server.hpp"
#include "report/step_record.hpp"
#include "train/loop.hpp"

namespace triax::launch {

// Topics.
inline constexpr const char* kStep = "step";
inline constexpr const char* kResult = "result";
inline constexpr const char* kEvaluating = "evaluating"; // the step that is done, before the evaluation after it
inline constexpr const char* kContinuing = "continuing"; // the step after which training continues
inline constexpr const char* kNote = "note";             // a line for the user
inline constexpr const char* kSignal = "signal";         // number of a signal that the rank's process has received

std::string to_line(const report::StepRecord& record); // without traffic
report::StepRecord read_step(std::string_view line);

std::string to_line(const train::LoopResult& result); // with traffic
train::LoopResult read_result(std::string_view line);

/// The number in a message of topic kSignal. Throws Error that names the rank if it is not of a signal that stops a
/// run.
int signal_in(const control::WorkerMessage& message);

/// Combines the messages of all ranks.
class JobResult {
 public:
  /// Returns a step of rank 0, for the progress display; stores the others. Not for notes and signals. Throws Error
  /// that names the rank if the message cannot be read.
  std::optional<report::StepRecord> take(const control::WorkerMessage& message);
  /// The result of rank 0 with the traffic and the missing files of all ranks; empty if rank 0 sent none.
  std::optional<train::LoopResult> together() const;
  /// The last step that rank 0 has done, also by earlier starts of the run.
  std::int64_t last_step() const { return last_step_; }
  /// Whether this start has done a step.
  bool has_step() const { return has_step_; }

 private:
  std::optional<report::StepRecord> read(const control::WorkerMessage& message);

  std::int64_t last_step_ = 0;
  bool has_step_ = false;
  std::optional<train::LoopResult> first_;
  std::vector<report::GroupTraffic> traffic_;
  report::Missing missing_;
};

} // namespace triax::launch
