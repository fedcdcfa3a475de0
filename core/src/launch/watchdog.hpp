// SPDX-License-Identifier: Apache-2.0
// The watchdog of the ranks of this process: it reports a rank that makes no progress for train.stall_timeout_s, and
// ends a process whose ranks do not end.
//
// A rank waits for others in loops that poll, which is progress, and have deadlines of their own. So what makes no
// progress is inside one call of a plugin or one operation of the engine, and nothing but another thread can tell.
//
// Threads: any; it looks on a thread of its own, and reports on another, for a report may hang in what the rank hangs
// in. Ownership: borrows what is watched. Blocking: the destructors, for a report and for a look. Errors: the
// constructor throws Error if there is no thread to be had.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "launch/observed_rank.hpp"
#include "train/stop_signals.hpp"
#include "triax/error.hpp"

namespace triax::launch {

struct WatchdogRequest {
  double stall_timeout_s = 600;
  const train::StopSignals& signals;
  /// Called on the watchdog's thread when ranks have not ended after a failure; does not return. Empty: somebody else
  /// ends the process.
  std::function<void()> end_process = {};
  /// After a signal a rank may stay in one call for this long, or stall_timeout_s if that is less. Batch systems kill
  /// what is still there 30 seconds after SIGTERM.
  double stall_after_signal_s = 20;
};

class Watchdog {
 public:
  /// Calls that wait have deadlines, a little after train.stall_timeout_s, and may be late by this.
  static constexpr double kMaxLateness = 10; // seconds
  /// From a failure to the end of a process with a rank that makes no progress.
  static constexpr double kGrace = 5; // seconds
  /// The same where that rank is the failure.
  static constexpr double kGraceOfStuck = 1; // seconds

  explicit Watchdog(const WatchdogRequest& request);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  struct Watched {
    ObservedRank* rank = nullptr;
    std::function<void(const Error&)> report; // empty once it has been called
    std::optional<double> reported_at_s;      // stalled
    std::thread reporting;
  };

  /// Watches a rank for as long as this object lives. `report` is called once at most, on a thread of its own.
  class Watching {
   public:
    Watching(Watchdog& watchdog, ObservedRank& rank, std::function<void(const Error&)> report);
    ~Watching();
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;

   private:
    Watchdog& watchdog_;
    std::list<Watched>::iterator watched_;
  };

  /// A rank has failed: from now on all have to end.
  void expect_end();

 private:
  void run(const std::stop_token& stop);
  void look();
  bool is_end_overdue();

  // With the mutex held.
  void report(Watched& watched, const Error& error);
  double limit_s(RankActivity::Kind kind) const;
  Error error_of(const ObservedRank& rank) const;

  const WatchdogRequest request_;
  std::mutex mutex_; // of what follows
  std::list<Watched> watched_;
  bool end_expected_ = false;
  std::jthread thread_; // goes first
};

} // namespace triax::launch
