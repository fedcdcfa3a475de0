// A rank's part in a job of several processes: its connection to the job's server, its abort flag, and, in rank 0 where
// nobody else does it, the server itself.
//
// Threads: the rank's main thread. Ownership: owns server and connection; borrows environment, signals and the rank
// that it watches. Blocking: enter() waits for the server, refusal() and finish() for all ranks, leave() a moment.
// Errors: Error naming what cannot be listened on, reached or read, or who is missing.
#pragma once

#include <map>
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
  config::LaunchKeys launch;
  double stall_timeout_s = 600; // how long server and ranks may be silent
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

  Store& store() { return *client_; }
  control::AbortFlag& abort() { return abort_; }
  /// Its place goes with the heartbeat from here on; null: no longer, and its last one stays.
  void watch(const train::Rank* rank);
  void tell(std::string_view topic, std::string_view text) { client_->tell(topic, text); }
  /// Whether no rank has asked before: what a later one noticed is likely the end of the first, so it waits a moment
  /// for the abort flag to tell of that. Where nobody answers it is the first.
  bool fails_first();
  /// Waits until all ranks have trained to their end.
  void finish(double timeout_s);
  /// From here on the end of this process is no loss. Who serves is the last to go: it waits until all others have
  /// left, or have had the time to.
  void leave();

  /// In rank 0 where it serves; else null.
  control::Server* server() { return server_.get(); }

 private:
  std::string place() const;
  std::string difference(const Candidate& candidate);
  void meet();

  const JobRequest request_;
  const control::JobToken token_;
  train::StopSignals& signals_;
  control::AbortFlag abort_;
  std::unique_ptr<control::Server> server_;
  mutable std::mutex mutex_; // of what follows
  const train::Rank* rank_ = nullptr;
  std::string last_place_;
  std::unique_ptr<control::Client> client_; // goes first: its thread asks for the place
};

} // namespace triax::launch
