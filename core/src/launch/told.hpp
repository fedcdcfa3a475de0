// SPDX-License-Identifier: Apache-2.0
// What ranks tell the process that runs their server: rank 0 each step and the result, every rank what it moved.
//
// Threads: pure; a JobResult belongs to one. Ownership: values. Blocking: never. Errors: reading throws Error for text
// that is none of these. Numbers read back to the same bits. The lines travel between processes of one build only.
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
inline constexpr const char* kNote = "note"; // a line for the user

std::string to_line(const report::StepRecord& record); // without its traffic
report::StepRecord read_step(std::string_view line);

std::string to_line(const train::LoopResult& result); // with its traffic
train::LoopResult read_result(std::string_view line);

/// Puts together the messages of all ranks.
class JobResult {
 public:
  /// A step of rank 0, for the progress bar; results are kept. Not for notes.
  std::optional<report::StepRecord> take(const control::Told& told);
  /// The result of rank 0, with the traffic and the missing files of all ranks; nothing if rank 0 sent none.
  std::optional<train::LoopResult> together() const;
  std::int64_t last_step() const { return last_step_; }

 private:
  std::int64_t last_step_ = 0;
  std::optional<train::LoopResult> first_;
  std::vector<report::GroupTraffic> traffic_;
  report::Missing missing_;
};

} // namespace triax::launch
