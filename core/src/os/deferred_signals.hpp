// SPDX-License-Identifier: Apache-2.0
// Blocks SIGINT, SIGTERM and SIGHUP, so that a subcommand can poll for them where it can stop without leftovers.
//
// Threads: the constructing thread, in a program without other threads. Ownership: the destructor restores the signal
// mask.
//
// Signals that were ignored when the process started stay ignored.
#pragma once

#include <csignal>

namespace triax::os {

class DeferredSignals {
 public:
  DeferredSignals();
  /// Drops pending signals: they came too late to stop anything.
  ~DeferredSignals();
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;

  /// The number of a pending signal, or 0.
  int caught();

 private:
  sigset_t signals_{}, mask_before_{};
};

} // namespace triax::os
