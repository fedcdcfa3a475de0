// SPDX-License-Identifier: Apache-2.0
#include "executor/dry_run_communicator.hpp"

namespace triax::executor {

Work DryRunCommunicator::do_collective(const Collective& collective, const TensorView&, const TensorView&, Stream&,
                                       ActionId action) {
  posted_.collectives.push_back(collective);
  for (int member = 0; member < size(); ++member) {
    const Payload bytes = payload_of(collective, member);
    CommStats& stats = posted_.of_member[static_cast<std::size_t>(member)];
    ++stats.ops;
    stats.bytes_out += bytes.out;
    stats.bytes_in += bytes.in;
  }
  return {{}, action};
}

Work DryRunCommunicator::do_exchange(std::span<const Transfer> transfers, Stream&, ActionId action) {
  CommStats& stats = posted_.of_member[static_cast<std::size_t>(rank())];
  ++stats.ops;
  for (const Transfer& transfer : transfers) {
    const bool sends = transfer.direction == Direction::send;
    (sends ? stats.bytes_out : stats.bytes_in) += transfer.view.bytes();
    if (sends) posted_.sent[transfer.peer] += transfer.view.bytes();
  }
  return {{}, action};
}

} // namespace triax::executor
