// SPDX-License-Identifier: Apache-2.0
// A rank's connection to the job server: the store for its communicators, its heartbeats, and abort messages.
//
// Threads: any; its own thread reads, sends heartbeats and calls the functions of ClientRequest. Ownership: owns its
// socket; the flag must outlive it. Blocking: the constructor, get() and barrier(), until their deadlines; set() and
// add() until the server answers, for at most silence_s. Errors: Error; after an abort, every call that waits throws
// the reason of the abort.
//
// Aborts travel both ways. If this rank sets the flag, the client sends the rank's error to the server, which sends it
// to all ranks. If the server reports a failure, or is lost, the client sets the flag. The process must then call
// leave() within grace_s, or within a second if its rank is stuck. Otherwise the client's thread ends the process with
// status 1, whatever it waits for. The flag must belong to this rank only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "control/abort_flag.hpp"
#include "control/job_token.hpp"
#include "os/address.hpp"
#include "triax/communicator.hpp"

namespace triax::control {

/// Progress of the rank; part of each heartbeat.
struct RankProgress {
  double stalled_s = 0;       // time without progress in one call; calls that wait for other ranks do not count
  bool is_stuck = false;      // for so long that the run must end
  double waiting_s = 0;       // time without progress in one wait for other ranks that polls
  bool has_timed_out = false; // a wait for other ranks reached its deadline
};

struct ClientRequest {
  os::Address server;
  JobToken token;
  int rank = 0, world = 1;
  double start_timeout_s = 300; // to reach the server, which may start later than this rank
  double silence_s = 600;       // longest silence of the server
  double grace_s = 5;           // from an abort until this process is ended if it has not left
  // The client's thread calls these functions. They must not block or throw.
  /// Position of the rank: "step 118, 0RECV_B3 from rank 2 through comm-ucx". Part of each heartbeat.
  std::function<std::string()> position;
  std::function<void(int signal)> on_stop;
  std::function<RankProgress()> progress = {};
  /// Called before the client ends the process; here a report can be written.
  std::function<void()> before_end = {};
  /// The variable that names the server's host, for errors: "MASTER_ADDR". Empty: launch.interface decided it.
  std::string server_variable = {};
};

class Client final : public Store, public JobAbort::Listener {
 public:
  /// Connects, authenticates with the token and joins the job; then listens to the flag. Throws Error with the server's
  /// address and the reason.
  Client(const ClientRequest& request, JobAbort& flag);
  /// Calls leave() if that has not been called.
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;
  std::int64_t add(std::string_view key, std::int64_t amount, Deadline deadline);
  /// Adds to a counter, and does not wait for the server. Other ranks read it with add(key, 0).
  void count(std::string_view key, std::int64_t amount);
  /// Waits until all ranks of the job are in the barrier of this name. Throws Error with the missing ranks.
  void barrier(std::string_view name, Deadline deadline);

  /// Sends a line to the process of the server. Does not block. The line arrives before later requests of this rank,
  /// and before leave() returns.
  void send(std::string_view topic, std::string_view text);
  /// Sends a heartbeat now, because this process is about to end: the server knows the last position. Waits at most
  /// `timeout_s` until it is sent.
  void send_position(double timeout_s) noexcept;
  /// After this, the end of the connection does not count as a loss. Waits until everything sent has arrived. Throws
  /// Error if the server does not confirm that within silence_s, or after an abort within the smaller of grace_s and
  /// silence_s.
  void leave();

  /// Called when this process sets the flag.
  void abort(std::string_view why) noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::control
