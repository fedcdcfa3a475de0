// SPDX-License-Identifier: Apache-2.0
// Implementation of Server: its connections, and the thread that serves them.
//
// Threads: public functions: any; run(): one. Ownership: owns its sockets. Blocking: run() until quit(). Errors: as for
// the constructor of Server.
//
// The cost of a round depends on the number of connections with events, not on the number of connections. epoll reports
// these connections, and ranks are indexed by number. All connections are checked for silence only every kRound.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/connection.hpp"
#include "control/message_queue.hpp"
#include "control/rank_registry.hpp"
#include "control/server.hpp"
#include "control/server_store.hpp"
#include "os/socket.hpp"

namespace triax::control {

class ServerThread {
 public:
  explicit ServerThread(const ServerRequest& request);

  void run();
  void quit();
  const os::Address& address() const noexcept { return address_; }

  void stop(int signal);
  void fail(const Failure& failure);
  std::optional<Failure> failure() const;
  std::optional<Clock::time_point> failed_at() const;
  std::vector<RankStatus> ranks() const;
  int joined() const;
  std::vector<int> missing() const;
  std::int64_t counter(std::string_view key) const;
  Rejections rejections() const;
  std::vector<WorkerMessage> drain_worker_messages();

 private:
  static constexpr std::size_t kPauseBytes = 1 << 20; // with more than this unsent to a peer, nothing is read from it

  struct Peer;
  using Peers = std::list<Peer>;
  struct Peer {
    Connection connection;
    Clock::time_point since; // arrival, or time at which it was asked to leave
    std::string from;        // IP address of the other end
    Peers::iterator self{};  // position in pending_ or members_
    int rank = kNoRank;      // from its hello
    bool leaving = false;    // only the end of the connection is expected
    bool suspect = false; // it sent something, or was silent for too long: counted as rejected unless it becomes a rank
    bool paused = false;  // received frames wait until it has read more
    bool ending = false;  // it is in ended_
    std::uint32_t events = 0; // that epoll waits for
  };

  // Called with the mutex held.
  bool serve(Peer& peer, Clock::time_point now);
  void hello(Peer& peer, const std::string& frame, Clock::time_point now);
  void message(Peer& peer, const std::string& frame, Clock::time_point now);
  void request(Peer& peer, Message request);
  void rank_failed(Peer& peer, Message message, Clock::time_point now);
  void reject(Peer& peer, int rank, const std::string& reason, const std::string& answer, Clock::time_point now);
  void leave(Peer& peer, Clock::time_point now);
  void note(const Failure& failure, Clock::time_point now);
  void send(int rank, const Message& message);
  void send_to_all(const Message& message);
  void send(Peer& peer, std::string_view frame);
  void accept_some(Clock::time_point now);
  void drop_oldest_pending();
  void check_absence(Clock::time_point now);
  void check_all_timeouts(Clock::time_point now);
  void check_timeouts(Peer& peer, Clock::time_point now);
  void end(Peer& peer, std::string why);
  void update_events(Peer& peer);
  void remove_ended(Clock::time_point now);
  Peer* peer_of(int rank);
  void wait_for(int descriptor, void* what, std::uint32_t events, int operation);

  const ServerRequest request_;
  os::Address address_; // declared before the socket, which sets it
  const os::Descriptor listening_;
  const os::Descriptor epoll_;
  os::Wake wake_;

  mutable std::mutex mutex_; // protects the members below
  bool quit_ = false;
  bool full_ = false;          // open file limit reached: new connections wait for a round
  Peers pending_, members_;    // connections before their hello, oldest first; ranks
  std::vector<Peer*> by_rank_; // null: not connected
  std::vector<Peer*> ended_;   // to be removed
  ServerStore store_;
  RankRegistry registry_;
  Rejections rejections_;
  MessageQueue worker_messages_{64 << 20};
  std::optional<int> stop_;                // the signal
  Clock::time_point round_ = Clock::now(); // when the thread last ran
  Clock::time_point checked_{};
};

} // namespace triax::control
