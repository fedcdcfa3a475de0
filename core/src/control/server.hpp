// SPDX-License-Identifier: Apache-2.0
// The job server: the key-value store of the job's ranks, and the state of each rank. It runs in the process that
// started the ranks, or in rank 0 if an external launcher started them.
//
// Threads: any; start() starts its own thread. Ownership: owns its sockets. Blocking: no function waits for a rank.
// Errors: the constructor throws Error if it cannot listen; later, an invalid message ends only its connection.
//
// The server sends the first failure to all ranks at once. A failure is: a rank stopped with an error (its abort), a
// rank is lost (the connection was closed without goodbye, or it was silent for silence_s), or a call of fail(). A
// connection is rejected, counted and listed in rejections() if it sends no hello of this protocol and version within a
// few seconds, has a wrong token, or claims a rank that does not exist or has joined already.
//
// If the server itself does not run (its process is stopped), that time does not count as silence of the ranks. If
// ranks stopped because of it, the failure has no rank (kNoRank).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/job_token.hpp"
#include "control/rejections.hpp"
#include "os/address.hpp"
#include "triax/device.hpp"
#include "triax/error.hpp"

namespace triax::control {

struct ServerRequest {
  std::string interface; // as for address_of_interface()
  int port = 0;          // 0: any free port
  int world = 1;
  JobToken token;         // if empty, only loopback is allowed
  double silence_s = 600; // longest silence of a rank
};

/// The error that the constructor throws if this process may not open the files of a server of `world` ranks. Raises
/// the soft limit as far as necessary.
std::optional<Error> open_files_error(int world);

/// The last known state of a rank.
struct RankStatus {
  enum class State { missing, joined, left, lost };
  State state = State::missing;
  int pid = 0;
  std::string host;
  std::string position;      // "step 118, 0RECV_B3 from rank 2 through comm-ucx"
  double silent_s = 0;       // since the last message; for a rank that left or was lost, until then
  double position_age_s = 0; // for a rank that was lost: age of `position` at that time
};

/// The reason of a loss begins with this if it only says that the connection ended.
inline constexpr std::string_view kConnectionEnded = "the connection ";

/// In place of a rank number: the failure is not of a rank.
inline constexpr int kNoRank = -1;

struct Failure {
  int rank = kNoRank;
  bool lost = false; // else the rank reported an error
  std::string
      why; // lost rank: "the connection was closed"; kNoRank: a complete sentence; else the rank's complete error
  bool stuck = false; // its main thread has not returned from a call
};

/// A message from a rank to the process of the server (Client::send).
struct WorkerMessage {
  int rank = 0;
  std::string topic, text;
  std::int64_t discarded = 0; // messages of the rank and topic before this one that did not fit in the queue
};

class Server {
 public:
  /// Listens: ranks can connect from now on, and wait until start(). Raises the process's limit of open files if the
  /// ranks need that.
  explicit Server(const ServerRequest& request);
  /// Stops its thread and closes all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  /// The address for ranks of this machine.
  os::Address address() const;

  /// Asks all ranks to stop after their current step, through ClientRequest::on_stop.
  void stop(int signal);
  /// Sends a failure that was detected elsewhere to all ranks. Only the first failure counts; messages that the rank
  /// sent earlier take precedence.
  void fail(const Failure& failure);

  /// The first failure. Two kinds of consequence are replaced by their cause: if a rank stopped with an error and
  /// another is lost within the next second, the failure is that loss. If a wait for other ranks timed out, the failure
  /// is the rank that makes no progress, if there is one.
  std::optional<Failure> failure() const;
  /// When the server recorded the first failure.
  std::optional<Clock::time_point> failed_at() const;
  std::vector<RankStatus> ranks() const;
  /// Number of ranks that have joined, and the ranks that have not, in ascending order.
  int joined() const;
  std::vector<int> missing() const;
  /// Sum of what ranks have added to the key (Client::add); 0 if none has.
  std::int64_t counter(std::string_view key) const;
  Rejections rejections() const;
  /// The messages since the last call, in order. At most 64 MiB are kept: of a rank and topic, the latest.
  std::vector<WorkerMessage> drain_worker_messages();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::control
