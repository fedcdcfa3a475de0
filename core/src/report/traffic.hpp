// SPDX-License-Identifier: Apache-2.0
// What the groups of a run have moved, over all ranks.
//
// Threads: pure. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "report/step_record.hpp"

namespace triax::report {

/// Adds up what belongs to the same group and plugin.
void add_traffic(std::vector<GroupTraffic>& sums, const std::vector<GroupTraffic>& of);

/// "sent between ranks, all of them together:" and a line for each group: its plugin, calls and bytes sent. Empty for
/// a run without groups.
std::string traffic_text(const std::vector<GroupTraffic>& sums);

} // namespace triax::report
