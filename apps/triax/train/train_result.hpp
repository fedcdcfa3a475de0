// SPDX-License-Identifier: Apache-2.0
// Reports the end of a run of `triax train` or `triax evaluate`: lines for the user, or with --json one object on
// stdout.
//
// Threads: one; failed(): any. Ownership: TrainReport borrows its arguments. Blocking: writes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/verbs.hpp"
#include "train/train_files.hpp"

namespace triax::app {

/// The steps that this start of a run has trained, as far as they are known here. One thread adds; any thread reads.
class TrainedSteps {
 public:
  /// Returns whether it is the first.
  bool add(std::int64_t step) {
    const bool first = last_ == 0;
    // Some may not be reported while the output is blocked; after a rewind, a step is done again.
    count_ += first ? 1 : std::max<std::int64_t>(step - last_, 1);
    last_ = step;
    return first;
  }
  std::int64_t last() const { return last_; }
  std::int64_t count() const { return count_; }

 private:
  std::atomic<std::int64_t> count_ = 0, last_ = 0;
};

/// The line that a supervised process sends once a step is done. Before it fails, it sends the object of --json.
inline constexpr std::string_view kBegunMessage = "begun";

class TrainReport {
 public:
  explicit TrainReport(const TrainArguments& arguments) : arguments_(arguments) {}

  /// Nothing was started. Returns the exit status, as do the other functions. `refusals` may be empty if another rank
  /// prints them.
  int refused(const std::vector<config::Diagnostic>& refusals) const;
  /// A rank failed and has logged why. `rank` is -1 if no rank failed; `status` is the exit status of this process.
  /// Only the first call prints. It prints at once, because a process whose rank is stuck is then ended. A supervised
  /// process sends the object of --json to the one that may start the run again.
  int failed(const config::RunConfig& run, int rank, const std::string& why, int status = kFailed) const;
  /// Training or evaluation finished, or was stopped by a signal or by train.time_limit.
  int ended(const config::RunConfig& run, const train::LoopResult& result) const;
  /// The process is about to end at once because of a signal. Any thread.
  void ended_at_once(const config::RunConfig& run, int signal, const TrainedSteps& steps) const;
  /// The object that --json prints if a signal ends the process before it trains.
  std::string ended_before(int signal) const;

 private:
  int evaluated(const config::RunConfig& run, const train::LoopResult& result) const;

  const TrainArguments& arguments_;
  mutable std::atomic_flag has_printed_; // the object of --json
};

/// The object that --json prints of a failed run. `folder`: of the run; may be empty. `rank`: -1: none.
std::string failure_text(const TrainArguments& arguments, const std::string& folder, int rank, const std::string& why,
                         int status);

/// The exit status of a run that ended without a failure: kUnfinished if it was stopped and its last step is saved.
int end_status(const train::LoopResult& result);

} // namespace triax::app
