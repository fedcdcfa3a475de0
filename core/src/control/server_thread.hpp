// The inside of a Server: its connections, and the thread that serves them.
//
// Threads: the public functions from any; run() on one. Ownership: owns its sockets. Blocking: run() until quit().
// Errors: the constructor as Server's.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "control/connection.hpp"
#include "control/roster.hpp"
#include "control/server.hpp"
#include "control/server_store.hpp"
#include "control/socket.hpp"

namespace triax::control {

class ServerThread {
 public:
  explicit ServerThread(const ServerRequest& request);

  void run();
  void quit();
  const Address& address() const noexcept { return address_; }

  void stop(int signal);
  void fail(const Failure& failure);
  std::optional<Failure> failure() const;
  std::vector<RankStatus> ranks() const;
  std::vector<Told> take_told();

 private:
  static constexpr int kStranger = -1;
  static constexpr std::size_t kPauseBytes = 1 << 20; // unsent to a rank: nothing more is read from it

  struct Peer {
    Connection connection;
    Clock::time_point since; // it came, or was told to go
    int rank = kStranger;    // that said hello
    bool leaving = false;    // nothing is expected but its end
  };

  // All of these with the mutex held.
  void serve(Peer& peer, Clock::time_point now);
  void hello(Peer& peer, const std::string& frame, Clock::time_point now);
  void message(Peer& peer, const std::string& frame, Clock::time_point now);
  void request(Peer& peer, Message request);
  void refuse(Peer& peer, const std::string& why, Clock::time_point now);
  void leave(Peer& peer, Clock::time_point now);
  void note(const Failure& failure, Clock::time_point now);
  void send(int rank, const Message& message);
  void send_to_all(const Message& message);
  void accept_some(Clock::time_point now);
  void drop_oldest_stranger();
  void judge(Peer& peer, Clock::time_point now);
  void remove_ended(Clock::time_point now);
  Peer* peer_of(int rank);

  const ServerRequest request_;
  Address address_; // before the socket, which fills it in
  const Descriptor listening_;
  Wake wake_;

  mutable std::mutex mutex_; // of what follows
  bool quit_ = false;
  bool full_ = false; // no file can be opened: connections are left waiting for a round
  std::vector<std::unique_ptr<Peer>> peers_;
  ServerStore store_;
  Roster roster_;
  std::vector<Told> told_;
  std::optional<int> stop_; // the signal
};

} // namespace triax::control
