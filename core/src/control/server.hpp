// The server of a job: the key-value store its ranks meet in, and the place where it is known how each of them is. It
// lives in the process that started the ranks, or in rank 0 where somebody else did.
//
// Threads: any; it works on a thread of its own, which start() begins. Ownership: owns its sockets. Blocking: none of
// its functions waits for a rank. Errors: the constructor throws Error if it cannot listen; later, what a connection
// does wrong ends that connection alone.
//
// The first failure is told to all ranks at once: that a rank gave up (its abort), that it is lost (its connection
// closed without goodbye, or nothing was heard from it for silence_s), or fail(). Strangers (no hello of this protocol
// and version within a few seconds, a wrong token, a rank that is not of this job or here already) are dropped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/address.hpp"
#include "control/job_token.hpp"

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

struct Failure {
  int rank = -1;
  bool lost = false; // else it gave up by itself
  std::string why;   // of a lost rank: "its connection closed"; else its error, whole
};

/// What a rank told its server (Client::tell).
struct Told {
  int rank = 0;
  std::string topic, text;
};

class Server {
 public:
  /// Listens: from now on ranks can connect, and wait until start().
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
  /// Tells all ranks of a failure that was noticed elsewhere. Only the first counts.
  void fail(const Failure& failure);

  /// The first failure. Where it is that a rank gave up, a rank lost within the second after it takes its place: that
  /// one's going is what the other noticed.
  std::optional<Failure> failure() const;
  std::vector<RankStatus> ranks() const;
  /// What has been told since the last call, in order.
  std::vector<Told> take_told();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace triax::control
