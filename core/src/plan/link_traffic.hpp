// SPDX-License-Identifier: Apache-2.0
// The bytes that the ranks of a run send in a training step over each axis and each kind of link, from the dry run of
// preflight. The totals per axis equal those of `triax check`.
//
// Ranks are on nodes in their order. A collective is a ring in the order of the members, as in the cost model: a member
// sends to the next one, and the last to the first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "triax/log.hpp"

namespace triax::plan {

enum class LinkKind : std::uint8_t { node, network };
inline constexpr std::size_t kLinkKinds = 2;

struct SentBytes {
  std::uint64_t most = 0; // of the rank that sends most
  std::uint64_t all = 0;  // of all ranks
};

struct AxisTraffic {
  std::string axis;                          // "tensor"; "tensor*data" of a product
  SentBytes sent;                            // over both kinds
  std::array<SentBytes, kLinkKinds> by_link; // by LinkKind
};

/// By axis, those of more than one rank. `devices`: of a node.
///
/// Blocking: a dry run of the pipeline and tensor ranks that differ. Errors: Error if the run's plugins refuse it.
std::vector<AxisTraffic> link_traffic(const config::RunConfig& run, int devices, Log& log);

} // namespace triax::plan
