// SPDX-License-Identifier: Apache-2.0
// Signals that end a run. SIGINT, SIGTERM and SIGHUP ask to stop after the current step; a second one ends the process
// at once. SIGQUIT ends it at once, with its default action: a core dump, where the system writes them. Each of them is
// logged. A signal that the process was started to ignore stays ignored, as SIGHUP under nohup.
//
// Ranks under our own launcher get the request from it, and it ends them if need be. To them a second signal, of a
// terminal's Ctrl-C to all of its processes, is the same request; SIGQUIT keeps its default action.
//
// Threads: made on the thread that starts the run, before it starts others, so that all of them leave the signals to
// this object's own thread. One at a time in a process. Ownership: owns its thread; borrows the log; the signal mask is
// restored at the object's end. Blocking: the destructor waits for the thread, a tenth of a second at most. Errors: the
// constructor throws Error if there is no thread to be had.
#pragma once

#include <atomic>
#include <csignal>
#include <mutex>
#include <string_view>
#include <thread>

#include "triax/log.hpp"

namespace triax::train {

class StopSignals {
 public:
  enum class From { user, launcher };
  explicit StopSignals(From from = From::user);
  explicit StopSignals(Log& log) : StopSignals() { set_log(&log); }
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Where signals are logged from here on; null: only SIGQUIT is reported, on stderr.
  void set_log(Log* log);
  /// The number of the signal, or 0.
  int caught() const noexcept { return caught_.load(); }
  /// Whether the first one ends the process at once: while a rank waits for others, there is no step to stop after.
  void end_at_once(bool at_once) noexcept { at_once_.store(at_once); }
  /// As if it had been caught. Any thread.
  void ask(int signal) noexcept { caught_.store(signal); }

 private:
  void watch(const std::stop_token& stop);
  void report(int signal, std::string_view what);
  [[noreturn]] void quit();

  const From from_;
  sigset_t signals_{}, mask_before_{};
  std::atomic<int> caught_{0};
  std::atomic<bool> at_once_{false};
  std::mutex mutex_; // of the log
  Log* log_ = nullptr;
  std::jthread thread_;
};

/// The log of stop signals for as long as this object lives.
class StopSignalLog {
 public:
  StopSignalLog(StopSignals& signals, Log& log) : signals_(signals) { signals_.set_log(&log); }
  ~StopSignalLog() { signals_.set_log(nullptr); }
  StopSignalLog(const StopSignalLog&) = delete;
  StopSignalLog& operator=(const StopSignalLog&) = delete;

 private:
  StopSignals& signals_;
};

} // namespace triax::train
