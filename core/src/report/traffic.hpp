// SPDX-License-Identifier: Apache-2.0
// Traffic of the groups of a run, summed over all ranks.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "report/step_record.hpp"

namespace triax::report {

/// Adds entries with the same group and plugin.
void add_traffic(std::vector<GroupTraffic>& sums, const std::vector<GroupTraffic>& of);

/// The counts of `now` beyond `before`, which has the same groups.
std::vector<GroupTraffic> difference(std::vector<GroupTraffic> now, const std::vector<GroupTraffic>& before);

/// "sent between ranks, sum over all ranks:" and a line per group: plugin, calls and bytes sent. Empty for a run
/// without groups.
std::string traffic_text(const std::vector<GroupTraffic>& sums);

} // namespace triax::report
