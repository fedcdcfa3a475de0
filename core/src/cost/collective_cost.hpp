// SPDX-License-Identifier: Apache-2.0
// Cost of collectives and transfers: NCCL's model of rings (its tuning.cc), from bytes and from how a group is placed
// on nodes.
//
// Threads: read-only after construction. Ownership: borrows the cluster; it must outlive the object.
#pragma once

#include <cstddef>

#include "cost/cluster.hpp"
#include "triax/communicator.hpp"

namespace triax::cost {

/// How the members of a group are placed. Other groups of the same kind run at the same time.
struct GroupShape {
  int members = 1;
  int nodes = 1;
  int groups_per_node = 1; // at once, on the busiest node
  int per_node() const { return members / nodes; }
  bool operator==(const GroupShape&) const = default;
};

/// Members that are `stride` ranks apart, with `devices` ranks per node, numbered from the first node. The ranks
/// between them are in groups of the same kind.
GroupShape placed(int members, int stride, int devices);

class CollectiveCost {
 public:
  explicit CollectiveCost(const Cluster& cluster) : cluster_(cluster) {}

  double seconds(const Collective& collective, const GroupShape& group) const;
  double seconds(Collective::Kind kind, double bytes, const GroupShape& group) const;
  /// Bandwidth of a transfer between two ranks; no two ranks share a NIC if there are enough.
  double link_bandwidth(bool crosses_nodes) const;

 private:
  double ring_s(const RingProtocol& protocol, double steps, double network_steps, double volume,
                double bandwidth) const;
  double bandwidth(const GroupShape& group) const;

  const Cluster& cluster_;
};

} // namespace triax::cost
