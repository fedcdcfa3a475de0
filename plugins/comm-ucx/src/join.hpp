// SPDX-License-Identifier: Apache-2.0
// How the members of a group join: each publishes its worker's address in the store, and all connect in the order of
// the group. They then exchange messages that UCX acknowledges, so that no connection is made during a step.
//
// Threads: the rank's main thread. Blocking: until the deadline; runs the progress loop, and checks the rank's abort
// flag. Errors: Error that names the missing ranks; ranks that join later get an error that the others gave up.
#pragma once

#include <memory>

#include "peer_endpoints.hpp"

namespace triax::comm_ucx {

class Joining {
 public:
  /// `next`: the first group number that this backend has not used.
  Joining(Transport& transport, const Group& group, Store& store, Deadline deadline, int& next);
  std::shared_ptr<PeerEndpoints> join();

 private:
  /// What a member publishes, for comparison.
  struct Card {
    int next = 0;
    std::string ranks, memory, host, address;
  };

  void check_limits() const;
  void publish();
  std::vector<Card> collect();
  bool fetch(const std::string& key, std::string& value);
  Card read(int member, const std::string& value) const;
  void agree(const std::vector<Card>& cards) const;
  std::shared_ptr<PeerEndpoints> connect(const std::vector<Card>& cards);
  void meet(PeerEndpoints& links);
  /// Waits until ready(member) for all others; `what` begins the error message.
  template <class Ready>
  void wait_for_all(std::string_view what, Ready ready);
  void check_given_up();
  void give_up(std::string_view why) noexcept;
  std::string card_key(int member) const;

  Transport& transport_;
  const Group& group_;
  Store& store_;
  const Deadline deadline_;
  int& next_;
  std::string key_;
};

} // namespace triax::comm_ucx
