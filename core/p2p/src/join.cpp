// SPDX-License-Identifier: Apache-2.0
#include "triax/p2p/join.hpp"

#include "bootstrap.hpp"
#include "p2p_communicator.hpp"

namespace triax::p2p {

std::unique_ptr<Communicator> join(Transport& transport, const Group& group, Store& store, Deadline deadline,
                                   int& next) {
  return std::make_unique<MessageCommunicator>(group, Bootstrap(transport, group, store, deadline, next).join());
}

CommTraits traits(CommTraits::Ranks ranks) noexcept {
  CommTraits out;
  out.order = CommTraits::Order::tagged;
  out.send = CommTraits::Send::rendezvous;
  out.post = CommTraits::Post::nonblocking;
  out.reduction = CommTraits::Reduction::rank_order;
  out.ranks = ranks;
  return out;
}

} // namespace triax::p2p
