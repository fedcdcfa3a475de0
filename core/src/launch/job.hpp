// SPDX-License-Identifier: Apache-2.0
// A rank's part in a job of several processes: its connection to the job's server, its abort flag, and, in rank 0 where
// nobody else does it, the server itself.
//
// Threads: the rank's main thread. Ownership: owns server and connection; borrows environment, signals and the rank
// that it watches. Order: abort(), server(), observe() and leave() are allowed at any time, everything else only after
// enter(). Blocking: enter() waits for the server, refusal() and finish() for all ranks, leave() a moment.
// Errors: Error naming what cannot be listened on, reached or read, or who is missing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "config/run_config.hpp"
#include "control/client.hpp"
#include "control/server.hpp"
#include "launch/environment.hpp"
#include "launch/observed_rank.hpp"
#include "launch/start_tracker.hpp"
#include "train/stop_signals.hpp"

namespace triax::launch {

struct JobRequest {
  const Environment& environment;
  config::LaunchKeys launch;
  double stall_timeout_s = 600; // how long server and ranks may be silent
  StartReports start = {};      // in the rank that serves; called on a thread of the Job until all ranks are ready
};

/// What a rank brings to the start.
struct Candidate {
  std::string refused;                     // what it says against the run, or nothing
  std::map<std::string, std::string> keys; // of its run, that must be the same on all ranks
};

class Job {
 public:
  /// In the rank that serves: listens. The token is that of TRIAX_JOB_TOKEN, else of launch.token_file, else none.
  Job(const JobRequest& request, train::StopSignals& signals);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Goes to the server. Waits for it until launch.start_timeout_s.
  void enter();
  /// Waits until all ranks have come. Nothing if none of them refuses to start; else what this rank has to tell of
  /// that, which is empty where another rank tells it. Who differs from rank 0 in a key refuses.
  std::optional<std::string> refusal(const Candidate& candidate);

  Store& store() { return client(); }
  control::AbortFlag& abort() { return abort_; }
  /// Its place and progress go with the heartbeat from here on; null: no longer, and its last place stays.
  void observe(const ObservedRank* rank);
  /// The rank is made: from here on a signal has it stop after its step.
  void start_steps() { signals_.end_at_once(false); }
  /// Called on another thread before the process is ended because its rank did not end after a failure; empty: nothing.
  void set_before_end(std::function<void()> report);
  void tell(std::string_view topic, std::string_view text) { client().tell(topic, text); }
  /// Whether no rank has asked before: what a later one noticed is likely the end of the first, so it waits a moment
  /// for the abort flag to tell of that. Where nobody answers it is the first.
  bool fails_first();
  /// Waits until all ranks have trained to their end.
  void finish(double timeout_s);
  /// After this call the end of this process does not count as a failure. The rank that serves leaves last: it waits
  /// until all others have left, for a few seconds at most. Allowed also when enter() has failed.
  void leave();

  /// In rank 0 where it serves; else null.
  control::Server* server() { return server_.get(); }

 private:
  control::Client& client() const;
  std::string place() const;
  control::RankProgress progress() const;
  void report_before_end();
  std::string difference(const Candidate& candidate);
  void meet();
  void track_start();

  const JobRequest request_;
  const control::JobToken token_;
  train::StopSignals& signals_;
  control::AbortFlag abort_;
  std::unique_ptr<control::Server> server_;
  std::jthread tracking_;    // the start
  mutable std::mutex mutex_; // of what follows
  const ObservedRank* rank_ = nullptr;
  std::string last_place_;
  control::RankProgress last_progress_;
  std::function<void()> before_end_;
  std::unique_ptr<control::Client> client_; // goes first: its thread asks for the place
};

} // namespace triax::launch
