// SPDX-License-Identifier: Apache-2.0
// The pause between two polls of a rank that waits for other ranks.
//
// Threads: an object belongs to the thread that waits; the count of waiting threads is shared by the process. Blocking:
// idle() for up to about 0.1 ms. Errors: none. Nothing is allocated.
#pragma once

#include "triax/export.hpp"

namespace triax {

/// A wait that polls, from construction to destruction. Waits may nest; a thread counts once.
///
///     PollPause pause;
///     while (!event.fired()) device.progress() ? pause.advance() : pause.idle();
///
/// Ranks as threads of one process may be more than its cores. While more threads wait than there are cores, giving up
/// the core leads from one waiting rank to the next, so a rank sleeps, and those that compute have the cores. With no
/// more ranks than cores nobody sleeps.
class TRIAX_API PollPause {
 public:
  PollPause() noexcept;
  ~PollPause();
  PollPause(const PollPause&) = delete;
  PollPause& operator=(const PollPause&) = delete;

  /// After a poll that found nothing to do.
  void idle() noexcept;
  /// After a poll that found something to do: more may follow soon.
  void advance() noexcept { idle_polls_ = 0; }

 private:
  int idle_polls_ = 0;
};

} // namespace triax
