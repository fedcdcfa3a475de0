// SPDX-License-Identifier: Apache-2.0
// The pause between two polls of a rank that waits for other ranks.
//
// Threads: an object belongs to the thread that waits; the process counts its threads that have waited. Ownership:
// values. Blocking: idle() may sleep, for a fraction of a millisecond. The first object of a process reads the number
// of cores from a few small files. Errors: none. Later objects of a thread allocate nothing.
#pragma once

#include "triax/export.hpp"

namespace triax {

/// A wait that polls:
///
///     PollPause pause;
///     while (!event.fired()) pause.after_poll(device.progress());
///
/// A process may have more ranks, as threads, than cores. A rank that yields its core then mostly yields it to another
/// rank that waits. So idle() sleeps if more threads of the process have waited than it has cores, within its affinity
/// mask and quotas: ranks that compute get the cores. Otherwise it sleeps only after 10,000 polls that found nothing to
/// do.
class TRIAX_API PollPause {
 public:
  PollPause() noexcept;
  PollPause(const PollPause&) = delete;
  PollPause& operator=(const PollPause&) = delete;

  /// After a poll that found nothing to do.
  void idle() noexcept;
  /// After a poll that found something to do: more may follow soon.
  void advance() noexcept { idle_polls_ = 0; }
  /// The one of these that a poll asks for: `progressed`, as Device::progress() returns.
  void after_poll(bool progressed) noexcept { progressed ? advance() : idle(); }

 private:
  int idle_polls_ = 0;
};

} // namespace triax
