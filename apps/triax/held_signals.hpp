// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP held back, to be asked for where a verb can stop and leave nothing behind.
//
// Threads: the one that makes it, in a program that has no other. Ownership: the signal mask comes back with the
// object's end. Blocking: never. Errors: none. Signals that the process was started to ignore stay ignored.
#pragma once

#include <csignal>

namespace triax::app {

class HeldSignals {
 public:
  HeldSignals();
  /// A signal that nobody asked for came too late to stop anything, and is dropped.
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// The number of a signal that has come, or 0.
  int caught();

 private:
  sigset_t signals_{}, mask_before_{};
};

} // namespace triax::app
