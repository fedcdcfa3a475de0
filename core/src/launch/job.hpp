// A rank's part in a job of several processes: its connection to the job's server, its abort flag, and, in rank 0 where
// nobody else does it, the server itself.
//
// Threads: the rank's main thread. Ownership: owns server and connection; borrows environment, signals and the rank
// that it watches. Blocking: the constructor waits for the server, ready() for all ranks. Errors: Error naming what
// cannot be listened on, reached or read, or who is missing.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "config/run_config.hpp"
#include "control/client.hpp"
#include "control/server.hpp"
#include "launch/environment.hpp"
#include "train/rank.hpp"
#include "train/stop_signals.hpp"

namespace triax::launch {

struct JobRequest {
  const Environment& environment;
  std::string interface; // [launch]
  int port = 0;
  double start_timeout_s = 300;
  double stall_timeout_s = 600; // how long server and ranks may be silent
  control::JobToken token;
};

/// As the run says; the token is that of TRIAX_JOB_TOKEN, else of launch.token_file, else none. Of a run that was
/// refused, and so says nothing: the defaults.
JobRequest job_request(const Environment& environment, const config::RunConfig* run);

class Job {
 public:
  Job(const JobRequest& request, train::StopSignals& signals);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  /// Waits until all ranks have come, and tells whether none of them has refused to start. `refused`: what this rank
  /// says against it, or nothing.
  bool ready(const std::string& refused);
  /// Whether rank 0 said the same against it. After ready().
  bool rank_0_refused(const std::string& refused);

  Store& store() { return *client_; }
  control::AbortFlag& abort() { return abort_; }
  /// Its place goes with the heartbeat from here on; null: no longer.
  void watch(const train::Rank* rank);
  void tell(std::string_view topic, std::string_view text) { client_->tell(topic, text); }
  /// Whether no rank has asked before: what a later one noticed is likely the end of the first, so it waits a moment
  /// for the abort flag to tell of that.
  bool fails_first();
  /// Waits until all ranks have trained to their end.
  void finish(double timeout_s);
  /// Where this rank serves, until all others have left, or have had the time to.
  void wait_for_others() const;
  /// From here on the end of this process is no loss. Who serves is the last to go.
  void leave();

  /// In rank 0 where it serves; else null.
  control::Server* server() { return server_.get(); }

 private:
  std::string place() const;

  const JobRequest request_;
  train::StopSignals& signals_;
  control::AbortFlag abort_;
  std::unique_ptr<control::Server> server_;
  mutable std::mutex mutex_; // of what follows
  const train::Rank* rank_ = nullptr;
  std::unique_ptr<control::Client> client_; // goes first: its thread asks for the place
};

} // namespace triax::launch
