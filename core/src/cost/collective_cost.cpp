// SPDX-License-Identifier: Apache-2.0
#include "cost/collective_cost.hpp"

#include <algorithm>

namespace triax::cost {

GroupShape placed(int members, int stride, int devices) {
  const int per_node = std::clamp(devices / stride, 1, members);
  return {members, (members + per_node - 1) / per_node, std::min(stride, devices)};
}

double CollectiveCost::bandwidth(const GroupShape& group) const {
  const NodeCosts& node = cluster_.node;
  if (group.nodes == 1) return node.bandwidth.value;
  const double nics = std::max(1.0, static_cast<double>(node.nics) / group.groups_per_node);
  const bool shares = group.per_node() > 1 && group.groups_per_node > 1;
  const double shared = shares ? cluster_.collectives.shared_nics.value : 1;
  return std::min(node.bandwidth.value, nics * node.nic_bandwidth.value * shared);
}

double CollectiveCost::ring_s(const RingProtocol& protocol, double steps, double network_steps, double volume,
                              double bandwidth) const {
  return protocol.base_s.value + (steps - network_steps) * protocol.node_s.value +
         network_steps * protocol.network_s.value + volume / (bandwidth * protocol.efficiency.value);
}

double CollectiveCost::seconds(Collective::Kind kind, double bytes, const GroupShape& group) const {
  if (group.members == 1) return 0;
  const double others = group.members - 1.0, members = group.members;
  double rounds = 1, volume = bytes * others / members; // of reduce_scatter and all_to_all
  if (kind == Collective::Kind::all_reduce) {
    rounds = 2;
    volume *= 2;
  } else if (kind == Collective::Kind::all_gather) {
    volume = bytes * others;
  } else if (kind == Collective::Kind::broadcast) {
    volume = bytes;
  }
  const double steps = rounds * others, network_steps = group.nodes > 1 ? std::min(steps, rounds * group.nodes) : 0;
  const double of_ring = bandwidth(group);
  const CollectiveCosts& costs = cluster_.collectives;
  return costs.launch_s.value + std::min(ring_s(costs.simple, steps, network_steps, volume, of_ring),
                                         ring_s(costs.ll128, steps, network_steps, volume, of_ring));
}

double CollectiveCost::seconds(const Collective& collective, const GroupShape& group) const {
  const double bytes = static_cast<double>(collective.elements) * static_cast<double>(bytes_of(collective.dtype));
  return seconds(collective.kind, bytes, group);
}

double CollectiveCost::link_bandwidth(bool crosses_nodes) const {
  const NodeCosts& node = cluster_.node;
  if (!crosses_nodes) return node.bandwidth.value;
  return node.nic_bandwidth.value * std::min(1.0, static_cast<double>(node.nics) / node.devices);
}

} // namespace triax::cost
