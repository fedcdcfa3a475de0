// SPDX-License-Identifier: Apache-2.0
// How the members of a group join: each publishes its worker's address (triax/rendezvous.hpp), and all connect in the
// order of the group. They then exchange messages that are acknowledged, so that no connection is made during a step.
//
// Threads: the rank's main thread. Blocking: until the deadline; runs the progress loop, and checks the rank's abort
// flag. Errors: Error that names the missing ranks; ranks that join later get an error that the others have left.
#pragma once

#include <memory>
#include <triax/rendezvous.hpp>
#include <vector>

#include "peer_endpoints.hpp"

namespace triax::p2p {

class Bootstrap {
 public:
  /// `next`: the first group number that this backend has not used.
  Bootstrap(Transport& transport, const Group& group, Store& store, Deadline deadline, int& next);
  std::shared_ptr<PeerEndpoints> join();

 private:
  void check_limits() const;
  std::shared_ptr<PeerEndpoints> connect(const std::vector<Rendezvous::Entry>& members);
  void warm_up_connections(PeerEndpoints& endpoints);

  Transport& transport_;
  const Group& group_;
  int& next_;
  Rendezvous rendezvous_;
};

} // namespace triax::p2p
