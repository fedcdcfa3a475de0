// SPDX-License-Identifier: Apache-2.0
// Gives turns to the ranks of one side of a comparison, which connect to it (train/turns.hpp).
//
// Threads: one. Ownership: owns its sockets. Blocking: poll(), for at most its time. Errors: Error for a message that
// cannot be read, or from ranks that do not wait for the same step.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "os/local_socket.hpp"
#include "report/turn_messages.hpp"

namespace triax::compare {

class TurnServer {
 public:
  /// `name`: where it listens; no other process may use it.
  TurnServer(std::string name, int ranks) : listener_(std::move(name)), ranks_(ranks) {}

  const std::string& name() const { return listener_.name(); }
  /// Receives messages for up to timeout_ms. Returns whether all ranks wait for a turn.
  bool poll(int timeout_ms);
  /// While all ranks wait: what they have sent, by rank.
  std::vector<report::WaitingRank> waiting() const;
  /// While all ranks wait: lets them continue.
  void give(const report::Turn& turn);

 private:
  struct Client {
    os::LocalConnection connection;
    bool waits = false;
    report::WaitingRank sent;
  };

  void read(Client& client);

  os::LocalListener listener_;
  const int ranks_;
  std::list<Client> clients_;
};

} // namespace triax::compare
