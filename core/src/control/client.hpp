// SPDX-License-Identifier: Apache-2.0
// A rank's connection to the server of its job: the store for its communicators, its heartbeat, and the wire that an
// abort travels on.
//
// Threads: any; one thread of its own reads, beats four times a second and calls the functions of ClientRequest.
// Ownership: owns its socket; the flag must outlive it. Blocking: the constructor, get() and barrier(), until their
// deadlines; set() and add() until the server has answered, which they give silence_s. Errors: Error; after an
// abort every call that waits throws its reason.
//
// Both ways: the flag raised here by this rank goes to the server with its error, and from there to all; a failure that
// the server tells of, and the loss of the server itself, raise the flag here. After that the process has grace_s to
// leave(), or a second if its rank is stuck; then this object's thread ends it with status 1, whatever it hangs in. The
// flag is this rank's alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "control/abort_flag.hpp"
#include "control/address.hpp"
#include "control/job_token.hpp"
#include "triax/communicator.hpp"

namespace triax::control {

/// What a rank tells of its progress with each heartbeat.
struct RankProgress {
  double stalled_s = 0;       // without progress in one call, but for calls that wait for others
  bool is_stuck = false;      // so long that the run has to end
  bool has_timed_out = false; // a wait for others ended at its deadline
};

struct ClientRequest {
  Address server;
  JobToken token;
  int rank = 0, world = 1;
  double start_timeout_s = 300; // to reach the server, which may come later than this rank
  double silence_s = 600;       // how long the server may be silent
  double grace_s = 5;           // from an abort to the end of a process that does not leave
  // Called on the thread of the Client; they may neither wait nor throw.
  /// Where the rank is: "step 118, 0RECV_B3 from rank 2 through comm-ucx". Goes with each beat.
  std::function<std::string()> place;
  std::function<void(int signal)> on_stop;
  std::function<RankProgress()> progress = {};
  /// Before it ends a process that does not leave: the time for a report.
  std::function<void()> before_end = {};
};

class Client final : public Store, public AbortFlag::Listener {
 public:
  /// Connects, shows the token and is let in; from then on it listens to the flag. Throws Error naming the server's
  /// address and the reason.
  Client(const ClientRequest& request, AbortFlag& flag);
  /// Leaves if nobody did.
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;
  std::int64_t add(std::string_view key, std::int64_t amount, Deadline deadline);
  /// Until all ranks of the job are in the barrier of that name. Throws Error naming those that are missing.
  void barrier(std::string_view name, Deadline deadline);

  /// A line for the process that runs the server. Does not wait; it arrives before what this rank asks later, and
  /// leave() sees it off.
  void tell(std::string_view topic, std::string_view text);
  /// From here on the end of this connection is no loss. Whatever was told has arrived: throws Error where the server
  /// has not said so within silence_s, after an abort within grace_s.
  void leave();

  /// The flag was raised here.
  void abort(std::string_view why) noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::control
