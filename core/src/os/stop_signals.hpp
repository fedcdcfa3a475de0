// SPDX-License-Identifier: Apache-2.0
// Signals that end a run. SIGINT, SIGTERM, SIGHUP and SIGUSR1, which batch systems send before a time limit, request
// a stop after the current step, batch or token; a second one ends the process at once. SIGQUIT ends it at once with
// the default action: a core dump, if the system writes them. Each signal is logged. A signal that was ignored when the
// process started stays ignored, like SIGHUP under nohup.
//
// Ranks under Triax's launcher get the request from the launcher, which also ends them if necessary. For them a second
// signal, from a terminal's Ctrl-C to all of its processes, is the same request; SIGQUIT has its default action.
//
// Threads: create it on the thread that starts the run, before other threads, so that all of them leave the signals to
// this object's thread. At most one per process. Ownership: owns its threads; borrows the log; the destructor restores
// the signal mask. Blocking: the destructor waits for the thread, at most 0.1 s, and for messages that the log has not
// written. Errors: the constructor throws Error if it cannot create a thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "triax/log.hpp"

namespace triax::os {

inline constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// When a requested stop ends the work, as messages say it.
inline constexpr const char *kEndOfStep = "at the end of a step", *kEndOfBatch = "after this batch",
                            *kEndOfToken = "after this token";

/// Whether this process ignores the signal.
bool is_ignored(int signal);

class StopSignals {
 public:
  enum class From { user, launcher };
  /// `supervisor`: a process that passes its signals on to this one (os/supervised_process.hpp); 0: none.
  explicit StopSignals(From from = From::user, pid_t supervisor = 0);
  explicit StopSignals(Log& log) : StopSignals() { set_log(&log); }
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Sets where signals are logged; null: only signals that end the process at once are reported, on stderr. `end`:
  /// when a stop that is requested ends the work, for the message; a literal.
  void set_log(Log* log, const char* end = kEndOfStep);
  /// The number of the signal, or 0.
  int caught() const noexcept { return caught_.load(); }
  /// The number of the signal that this process has received, or 0; not what ask() sets.
  int received() const noexcept { return received_.load(); }
  /// Whether the first signal ends the process at once: while a rank waits for others to start, there is no current
  /// step.
  void end_at_once(bool at_once) noexcept { at_once_.store(at_once); }
  /// Called on another thread with a signal that ends the process at once, before it ends; for at most 0.2 s. May be
  /// empty.
  void set_before_end(std::function<void(int signal)> before_end);
  /// Has the effect of a caught signal. Any thread.
  void ask(int signal) noexcept { caught_.store(signal); }

 private:
  void watch(const std::stop_token& stop);
  bool is_repetition(const siginfo_t& from);
  void report_soon(int signal, std::string what);
  void run_soon(std::function<void()> work);
  void report(int signal, std::string_view what);
  [[noreturn]] void quit();

  const From from_;
  const pid_t supervisor_;
  int from_supervisor_ = 0, from_others_ = 0; // number of signals
  sigset_t signals_{}, mask_before_{};
  std::atomic<int> caught_{0}, received_{0};
  std::atomic<bool> at_once_{false}, watches_{false};
  std::mutex mutex_; // protects the log
  Log* log_ = nullptr;
  std::atomic<const char*> end_{kEndOfStep};
  std::mutex end_mutex_; // protects before_end_
  std::function<void(int)> before_end_;
  std::list<std::jthread> reporters_; // log one signal each
  std::jthread thread_;
};

/// Sets the log of stop signals while this object exists.
class StopSignalLog {
 public:
  StopSignalLog(StopSignals& signals, Log& log, const char* end = kEndOfStep) : signals_(signals) {
    signals_.set_log(&log, end);
  }
  ~StopSignalLog() { signals_.set_log(nullptr); }
  StopSignalLog(const StopSignalLog&) = delete;
  StopSignalLog& operator=(const StopSignalLog&) = delete;

 private:
  StopSignals& signals_;
};

/// Work that is done when the process ends at once while this object exists.
class BeforeEnd {
 public:
  BeforeEnd(StopSignals& signals, std::function<void(int signal)> work) : signals_(signals) {
    signals_.set_before_end(std::move(work));
  }
  ~BeforeEnd() { signals_.set_before_end({}); }
  BeforeEnd(const BeforeEnd&) = delete;
  BeforeEnd& operator=(const BeforeEnd&) = delete;

 private:
  StopSignals& signals_;
};

} // namespace triax::os
