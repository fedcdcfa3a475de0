// SPDX-License-Identifier: Apache-2.0
// A rank's part in a job of several processes: its connection to the job server, its abort flag, and, in rank 0 if no
// launcher runs it, the job server itself.
//
// Threads: the rank's main thread. Ownership: owns server and connection; borrows environment, signals and the observed
// rank. Order: abort(), server(), observe() and leave() are always allowed, the other functions only after enter().
// Blocking: enter() waits for the server, wait_for_start() and finish() for all ranks, leave() for some seconds.
// Errors: Error with the address or file, or the missing ranks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "config/run_config.hpp"
#include "control/client.hpp"
#include "control/server.hpp"
#include "launch/environment.hpp"
#include "launch/observed_rank.hpp"
#include "launch/start_tracker.hpp"
#include "os/stop_signals.hpp"

namespace triax::launch {

struct JobRequest {
  const Environment& environment;
  config::LaunchKeys launch;
  double stall_timeout_s = 600; // a server or rank without a heartbeat for this long is lost
  StartReports start = {}; // in the rank that runs the server; called on a thread of the Job until all ranks are ready
  std::string_view start_timeout_name = "launch.start_timeout_s"; // how messages name launch.start_timeout_s
};

/// A rank's vote on whether the job starts.
struct Candidate {
  std::string refused;                     // why this rank cannot start the run; empty if it can
  std::map<std::string, std::string> keys; // configuration values that must be equal on all ranks
};

class Job {
 public:
  /// In the rank that runs the server: listens. The token is that of TRIAX_JOB_TOKEN, else of launch.token_file, else
  /// empty.
  Job(const JobRequest& request, os::StopSignals& signals);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Connects to the server. Waits for it up to launch.start_timeout_s.
  void enter();
  /// Waits until all ranks have joined. Returns nullopt if the job starts, else the text that this rank reports (empty
  /// if another rank reports it). A rank whose keys differ from rank 0's cannot start.
  std::optional<std::string> wait_for_start(const Candidate& candidate);

  Store& store() { return client(); }
  control::JobAbort& abort() { return abort_; }
  /// From now on, heartbeats carry the position and progress of this rank. Null: they carry the last position.
  void observe(const ObservedRank* rank);
  /// This process is about to end: the job server gets its last position. Any thread.
  void end_at(const std::string& position);
  /// The rank is constructed: from now on a signal stops it after its current step.
  void start_steps() { signals_.end_at_once(false); }
  /// Called on another thread before the process is ended because its rank did not stop after a failure. May be empty.
  void set_before_end(std::function<void()> report);
  void send(std::string_view topic, std::string_view text) { client().send(topic, text); }
  void count(std::string_view key, std::int64_t amount) { client().count(key, amount); }
  /// True if this rank is the first that reports a failure. A later failure is most likely a consequence of the first,
  /// so a later rank waits up to a second for the abort flag to be set. Without an answer from the server, the rank
  /// counts as first if the flag is still not set.
  bool is_first_failure();
  /// Waits until all ranks have finished. Throws Error at the deadline, or when the job is aborted.
  void finish(Deadline deadline);
  /// After this, the end of this process does not count as a failure. The rank that runs the server leaves last: it
  /// waits up to 5 s for the others to leave. Allowed also if enter() has failed.
  void leave();

  /// In the rank that runs the server; else null.
  control::Server* server() { return server_.get(); }

 private:
  control::Client& client() const;
  std::string position() const;
  control::RankProgress progress() const;
  void report_before_end();
  std::string difference(const Candidate& candidate);
  void wait_for_ranks();
  void track_start();

  const JobRequest request_;
  const control::JobToken token_;
  os::StopSignals& signals_;
  control::JobAbort abort_;
  std::unique_ptr<control::Server> server_;
  std::jthread tracking_;    // follows the start of the job
  mutable std::mutex mutex_; // protects the members below
  const ObservedRank* rank_ = nullptr;
  std::string last_position_;
  control::RankProgress last_progress_;
  std::function<void()> before_end_;
  std::unique_ptr<control::Client> client_; // destroyed first: its thread reads the position
};

} // namespace triax::launch
