// SPDX-License-Identifier: Apache-2.0
#include "cost/stage_link.hpp"

#include "cost/collective_cost.hpp"

namespace triax::cost {

LinkTime link_time(const Cluster& cluster, const CodeTraits& code, double bytes, int parts, bool crosses_nodes) {
  const CollectiveCost collectives(cluster);
  LinkTime out;
  if (parts > 1) {
    bytes /= parts;
    out.gather_s = collectives.seconds(Collective::Kind::all_gather, bytes, placed(parts, 1, cluster.node.devices));
  }
  out.seconds = bytes / collectives.link_bandwidth(crosses_nodes);
  out.latency_s = cluster.step.transfer_s.value + (code.synchronizes ? cluster.step.synchronize_s.value : 0);
  return out;
}

} // namespace triax::cost
