// SPDX-License-Identifier: Apache-2.0
// The server of a job: the key-value store its ranks meet in, and the place where it is known how each of them is. It
// lives in the process that started the ranks, or in rank 0 where somebody else did.
//
// Threads: any; it works on a thread of its own, which start() begins. Ownership: owns its sockets. Blocking: none of
// its functions waits for a rank. Errors: the constructor throws Error if it cannot listen; later, what a connection
// does wrong ends that connection alone.
//
// The first failure is told to all ranks at once: that a rank gave up (its abort), that it is lost (its connection
// closed without goodbye, or nothing was heard from it for silence_s), or fail(). Connections without a hello of this
// protocol and version within a few seconds, with a wrong token, or of a rank that is not of this job or has joined
// already, are rejected, counted and listed (rejections()).
//
// Time in which the server itself did not run (its process was stopped) does not count as the ranks' silence. Where the
// ranks gave up because of it, the failure names no rank (kNoRank).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/address.hpp"
#include "control/job_token.hpp"
#include "control/rejections.hpp"
#include "triax/device.hpp"

namespace triax::control {

struct ServerRequest {
  std::string interface; // as address_of_interface() takes it
  int port = 0;          // 0: one that is free
  int world = 1;
  JobToken token;         // without one, only on loopback
  double silence_s = 600; // how long nothing may be heard from a rank
};

/// A rank as the server last heard of it.
struct RankStatus {
  enum class State { missing, here, left, lost };
  State state = State::missing;
  int pid = 0;
  std::string host;
  std::string place;      // "step 118, 0RECV_B3 from rank 2 through comm-ucx"
  double silent_s = 0;    // since something was heard; of a rank that left or was lost, until then
  double place_age_s = 0; // of a rank that was lost: since it had told its place, until then
};

/// In place of a rank: what failed is none of them.
inline constexpr int kNoRank = -1;

struct Failure {
  int rank = kNoRank;
  bool lost = false;  // else it gave up by itself
  std::string why;    // of a lost rank: "its connection closed"; of kNoRank a whole sentence; else its error, whole
  bool stuck = false; // its main thread does not return from a call
};

/// What a rank told its server (Client::tell).
struct Told {
  int rank = 0;
  std::string topic, text;
};

class Server {
 public:
  /// Listens: from now on ranks can connect, and wait until start(). Raises this process's limit of open files where
  /// the ranks need that.
  explicit Server(const ServerRequest& request);
  /// Ends its thread and closes all connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  /// Where ranks of this machine reach it.
  Address address() const;

  /// All ranks are asked to stop after their step: Client's `on_stop`.
  void stop(int signal);
  /// Tells all ranks of a failure that was noticed elsewhere. Only the first counts; what the rank itself sent before
  /// counts first.
  void fail(const Failure& failure);

  /// The first failure. Where it is that a rank gave up, a rank lost within the second after it takes its place: that
  /// one's going is what the other noticed. Where it is that a wait for other ranks timed out, it is the rank that
  /// makes no progress, if there is one.
  std::optional<Failure> failure() const;
  /// When the server noted that something had failed.
  std::optional<Clock::time_point> failed_at() const;
  std::vector<RankStatus> ranks() const;
  /// Ranks that have joined, and those that have not, ascending.
  int joined() const;
  std::vector<int> missing() const;
  /// What ranks have added to the key (Client::add); 0: nothing.
  std::int64_t counter(std::string_view key) const;
  Rejections rejections() const;
  /// What has been told since the last call, in order.
  std::vector<Told> take_told();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::control
