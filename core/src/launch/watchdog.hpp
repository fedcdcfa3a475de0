// SPDX-License-Identifier: Apache-2.0
// The watchdog for the ranks of this process: reports a rank that makes no progress for train.stall_timeout_s, and ends
// the process if its ranks do not stop after a failure.
//
// Waits of a rank for others poll, which counts as progress. So a rank without progress is in one call of a plugin or
// one operation of the engine. Only another thread can detect that. A wait ends with an error only if all ranks of the
// job wait: as long as one of them works, the others wait for it.
//
// Threads: any; polls on its own thread, and reports on another, because a report may hang in the same call as the
// rank. Ownership: borrows what is watched. Blocking: the destructors wait for a report and a poll. Errors: the
// constructor throws Error if it cannot create a thread.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "launch/observed_rank.hpp"
#include "os/stop_signals.hpp"
#include "triax/error.hpp"

namespace triax::launch {

struct WatchdogRequest {
  double stall_timeout_s = 600;
  const os::StopSignals& signals;
  /// Called on the watchdog's thread ten times a second. May be empty.
  std::function<void()> each_period = {};
  /// Called on the watchdog's thread if ranks have not ended after a failure; does not return. Empty: the process is
  /// ended elsewhere.
  std::function<void()> end_process = {};
  /// After a signal, a rank may stay in one call for at most this long (or stall_timeout_s if that is less). Batch
  /// systems kill processes 30 s after SIGTERM.
  double stall_after_signal_s = 20;
  /// All ranks of the job are watched here: reports the one that waits for the longest time if none can continue.
  /// Otherwise the job server does.
  bool has_all_ranks = false;
};

class Watchdog {
 public:
  /// Calls that wait have deadlines slightly after train.stall_timeout_s, and may end this much later.
  static constexpr double kMaxLateness = 10; // seconds
  /// From a failure to the end of the process, if a rank makes no progress.
  static constexpr double kGrace = 5; // seconds
  /// The same, if that rank is the failure.
  static constexpr double kGraceOfStuck = 1; // seconds

  explicit Watchdog(const WatchdogRequest& request);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  struct Watched {
    ObservedRank* rank = nullptr;
    std::function<void(const Error&)> report; // empty once called
    std::optional<double> reported_at_s;      // stall time at the report
    std::thread reporting;
  };

  /// Watches a rank for as long as this object lives. Calls `report` at most once, on a separate thread.
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

  /// A rank has failed: all ranks must end from now on.
  void expect_end();

 private:
  void run(const std::stop_token& stop);
  void sample();
  void look_for_deadlock();
  bool is_end_overdue();

  // Called with the mutex held.
  void report(Watched& watched, const Error& error);
  double limit_s(RankActivity::Kind kind) const;
  Error error_of(const ObservedRank& rank) const;

  const WatchdogRequest request_;
  std::mutex mutex_; // protects the members below
  std::list<Watched> watched_;
  bool end_expected_ = false;
  std::jthread thread_; // destroyed first
};

} // namespace triax::launch
