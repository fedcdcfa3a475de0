// SPDX-License-Identifier: Apache-2.0
// Cost of the boundary between two stages: its messages, and the gather of what was scattered (SC'21, section 4.1).
//
// Threads: pure functions.
#pragma once

#include "cost/cluster.hpp"
#include "cost/code_traits.hpp"

namespace triax::cost {

/// A boundary between stage i and i + 1.
struct LinkTime {
  double latency_s = 0; // of a set of transfers
  double seconds = 0;   // of a message, without the latency
  double gather_s = 0;  // before a pass that reads a scattered boundary
};

/// `bytes`: of the whole boundary tensor of a rank. `parts`: tensor ranks that send a part each; 1: each sends all of
/// it. `crosses_nodes`: a message leaves its node.
LinkTime link_time(const Cluster& cluster, const CodeTraits& code, double bytes, int parts, bool crosses_nodes);

} // namespace triax::cost
