// SPDX-License-Identifier: Apache-2.0
// The pause between two polls of a rank that waits for other ranks.
//
// Threads: an object belongs to the thread that waits; the process counts its threads that have waited. Blocking:
// idle() may sleep, for a fraction of a millisecond. Errors: none. Nothing is allocated.
#pragma once

#include "triax/export.hpp"

namespace triax {

/// A wait that polls:
///
///     PollPause pause;
///     while (!event.fired()) device.progress() ? pause.advance() : pause.idle();
///
/// Ranks as threads of one process may be more than its cores. A rank that gives up its core then mostly gives it to
/// another rank that waits. So idle() sleeps if more threads of the process have waited than it has cores, and ranks
/// that compute have the cores. Otherwise it sleeps only after 10,000 polls that found nothing to do.
class TRIAX_API PollPause {
 public:
  PollPause() noexcept;
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
