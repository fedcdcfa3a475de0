// SPDX-License-Identifier: Apache-2.0
// One rank's training from its first to its last step: the one place where what a rank throws is caught.
//
// Threads: the rank's main thread. Ownership: borrows what RankTraining refers to. Blocking: for the length of the
// training. Errors: none leave it: they raise the abort flag; the rank that failed first logs its error, the others
// tell at debug level why they stopped.
#pragma once

#include <functional>
#include <optional>

#include "control/server.hpp"
#include "launch/watchdog.hpp"
#include "train/loop.hpp"

namespace triax::launch {

struct RankTraining {
  const config::RunConfig& run;
  const Layout& layout;
  int number = 0;
  Store& store;
  control::AbortFlag& abort;
  Log& log;
  const train::StopSignals& signals;
  train::Reports reports;
  train::RankOptions options; // the abort flag is set here
  /// Given this rank's result, with the rank still there: returns once all have trained, with what train_rank() is to
  /// return. A rank that went sooner would close connections that others still wait on, and be lost to them.
  std::function<std::optional<train::LoopResult>(const train::LoopResult&)> finish;
  Watchdog& watchdog;
  /// Told of the rank before it is made, and with null before it goes. May be empty.
  std::function<void(const ObservedRank*)> observe = {};
  /// Told once it is made. May be empty.
  std::function<void()> made = {};
  /// Told of its failure, before the others are. The rank's thread or the watchdog's. May be empty.
  std::function<void(const control::Failure&)> failed = {};
  /// Asked of a failure before the flag is raised: whether no rank of another process has failed before. Empty: yes.
  std::function<bool()> fails_first = {};
};

/// Nothing if it failed.
std::optional<train::LoopResult> train_rank(const RankTraining& training);

} // namespace triax::launch
