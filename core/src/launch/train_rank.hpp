// SPDX-License-Identifier: Apache-2.0
// Trains one rank from its first to its last step, or has it evaluate or generate text. All exceptions of a rank are
// caught here.
//
// Threads: the rank's main thread. Ownership: borrows what RankTraining refers to. Blocking: until training ends.
// Errors: not thrown: they set the abort flag. The rank that failed first logs its error; the others log at debug level
// why they stopped.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "control/server.hpp"
#include "launch/watchdog.hpp"
#include "train/generate_text.hpp"
#include "train/loop.hpp"

namespace triax::launch {

struct RankTraining {
  const config::RunConfig& run;
  const Layout& layout;
  int number = 0;
  Store& store;
  control::JobAbort& abort;
  Log& log;
  const os::StopSignals& signals;
  train::Reports reports;
  train::RankOptions options; // the abort flag is set here
  /// Called with this rank's result while the rank still exists. Returns once all ranks have trained, with the result
  /// of train_rank(). If a rank were destroyed earlier, it would close connections that others still use.
  std::function<std::optional<train::LoopResult>(const train::LoopResult&)> finish;
  Watchdog& watchdog;
  /// Called with the rank before it is constructed, and with null at its end. May be empty.
  std::function<void(const ObservedRank*)> observe = {};
  /// Called after construction. May be empty.
  std::function<void()> made = {};
  /// Called with the rank's failure, before the others learn of it. The rank's thread or the watchdog's. May be empty.
  std::function<void(const control::Failure&)> failed = {};
  /// Called on a failure before the flag is set: returns whether no rank of another process has failed before. Empty:
  /// yes.
  std::function<bool()> is_first_failure = {};
  /// Called on the rank's thread if it fails after `steps` steps, before other ranks learn of it: waits until rank 0
  /// has recorded them or records them even if it fails, for at most kRecordGrace. May be empty.
  std::function<void(std::int64_t steps)> await_record = {};
  const train::TextJob* text = nullptr; // for a run that generates
};

/// Without this wait, the failure could end rank 0 before it knows that all ranks have completed the step before.
inline constexpr std::chrono::seconds kRecordGrace{1};
inline constexpr std::chrono::milliseconds kRecordPoll{2};

/// Empty if the rank failed.
std::optional<train::LoopResult> train_rank(const RankTraining& training);

} // namespace triax::launch
