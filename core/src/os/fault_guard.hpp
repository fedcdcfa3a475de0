// SPDX-License-Identifier: Apache-2.0
// Notices a signal that a defect raises in this process, such as SIGSEGV. The thread that crashed waits until another
// thread has reported it; then the signal has its default action, so exit status and core dump stay as they are.
//
// The handler only uses async-signal-safe functions: the thread may have crashed in malloc() or with a lock held. So
// the report is made by another thread, and the handler waits for it for a limited time.
//
// Threads: made and destroyed by one thread, at most one at a time; install(): any thread; take() and reported(): one
// thread. Blocking: never.
// Errors: none. Signals that have a handler already (of a GPU library, or a debugging aid) are not changed. With a
// sanitizer nothing is changed, because its report says more.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <memory>
#include <optional>

#include "triax/rank_activity.hpp"

namespace triax::os {

/// Signals that a defect raises in its own process.
inline constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

struct Fault {
  int signal = 0;
  pid_t sender = 0;                       // another process that sent the signal; 0: this process raised it
  const void* code = nullptr;             // the instruction
  const RankActivity* activity = nullptr; // bound to the thread that crashed; null: it is not a rank's main thread
};

class FaultGuard {
 public:
  static constexpr int kReportMs = 5000; // limit of a report

  FaultGuard();
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  /// Handles the signals that have their default action now. Libraries such as UCX install handlers when they are
  /// loaded, and a plugin may remove them when it is created.
  void install() noexcept;
  /// The first fault, once. To be polled: nothing wakes its caller.
  std::optional<Fault> take() noexcept;
  /// The fault has been reported: the process ends.
  void reported() noexcept;
};

/// An alternate signal stack for the calling thread, so that a stack overflow can be handled.
class FaultStack {
 public:
  FaultStack();
  ~FaultStack();
  FaultStack(const FaultStack&) = delete;
  FaultStack& operator=(const FaultStack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_; // null: the thread has one already
};

/// "crashed with SIGSEGV (Segmentation fault)", or "was ended by SIGABRT (Aborted) from process 4211".
std::string to_text(const Fault& fault);

} // namespace triax::os
