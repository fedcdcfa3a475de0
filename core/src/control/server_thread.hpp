// SPDX-License-Identifier: Apache-2.0
// The inside of a Server: its connections, and the thread that serves them.
//
// Threads: the public functions from any; run() on one. Ownership: owns its sockets. Blocking: run() until quit().
// Errors: the constructor as Server's.
//
// The work of a round depends on how many connections have something to say, not on how many there are: epoll names
// them, ranks are found by their number, and only every kRound all of them are looked at for their silence.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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
  std::optional<Clock::time_point> failed_at() const;
  std::vector<RankStatus> ranks() const;
  int joined() const;
  std::vector<int> missing() const;
  std::int64_t counter(std::string_view key) const;
  Rejections rejections() const;
  std::vector<Told> take_told();

 private:
  static constexpr std::size_t kPauseBytes = 1 << 20; // unsent to a rank: nothing more is read from it

  struct Peer;
  using Peers = std::list<Peer>;
  struct Peer {
    Connection connection;
    Clock::time_point since;  // it came, or was told to go
    std::string from;         // the number of its other end
    Peers::iterator self{};   // in strangers_ or members_
    int rank = kNoRank;       // that said hello
    bool leaving = false;     // nothing is expected but its end
    bool suspect = false;     // it has sent something, or nothing for too long: if no rank comes of it, it is rejected
    bool paused = false;      // frames that it sent wait until it has read more
    bool ending = false;      // it is in ended_
    std::uint32_t events = 0; // that are waited for
  };

  // All of these with the mutex held.
  bool serve(Peer& peer, Clock::time_point now);
  void hello(Peer& peer, const std::string& frame, Clock::time_point now);
  void message(Peer& peer, const std::string& frame, Clock::time_point now);
  void request(Peer& peer, Message request);
  void give_up(Peer& peer, Message message, Clock::time_point now);
  void reject(Peer& peer, int rank, const std::string& reason, const std::string& answer, Clock::time_point now);
  void leave(Peer& peer, Clock::time_point now);
  void note(const Failure& failure, Clock::time_point now);
  void send(int rank, const Message& message);
  void send_to_all(const Message& message);
  void send(Peer& peer, std::string_view frame);
  void accept_some(Clock::time_point now);
  void drop_oldest_stranger();
  void check_absence(Clock::time_point now);
  void judge_all(Clock::time_point now);
  void judge(Peer& peer, Clock::time_point now);
  void end(Peer& peer, std::string why);
  void settle(Peer& peer);
  void remove_ended(Clock::time_point now);
  Peer* peer_of(int rank);
  void wait_for(int descriptor, void* what, std::uint32_t events, int operation);

  const ServerRequest request_;
  Address address_; // before the socket, which fills it in
  const Descriptor listening_;
  const Descriptor epoll_;
  Wake wake_;

  mutable std::mutex mutex_; // of what follows
  bool quit_ = false;
  bool full_ = false;          // no file can be opened: connections are left waiting for a round
  Peers strangers_, members_;  // strangers in the order in which they came; ranks
  std::vector<Peer*> by_rank_; // null: not here
  std::vector<Peer*> ended_;   // that are to be removed
  ServerStore store_;
  Roster roster_;
  Rejections rejections_;
  std::vector<Told> told_;
  std::optional<int> stop_;                // the signal
  Clock::time_point round_ = Clock::now(); // when the thread was last seen running
  Clock::time_point judged_{};
};

} // namespace triax::control
