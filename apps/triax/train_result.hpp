// SPDX-License-Identifier: Apache-2.0
// How `triax train` reports the end of a run: lines for a user, with --json one object on stdout.
//
// Threads: one, but failed(): any. Ownership: TrainReport borrows its arguments. Blocking: writes. Errors: none.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "train_files.hpp"

namespace triax::app {

class TrainReport {
 public:
  explicit TrainReport(const TrainArguments& arguments) : arguments_(arguments) {}

  /// Each returns the exit status. Nothing was started; `refusals` may be empty where another rank prints them.
  int refused(const std::vector<std::string>& refusals) const;
  /// A rank failed: it has logged why. `rank` is -1 where the failure is not a rank's. The first call alone prints, at
  /// once: a process whose rank is stuck has no later moment.
  int failed(const config::RunConfig& run, int rank, const std::string& why) const;
  /// Trained to the end, or stopped by a signal.
  int ended(const config::RunConfig& run, const train::LoopResult& result) const;

 private:
  const TrainArguments& arguments_;
  mutable std::atomic_flag has_failed_; // and failed() has said so
};

} // namespace triax::app
