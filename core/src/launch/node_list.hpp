// SPDX-License-Identifier: Apache-2.0
// Parses Slurm's compressed lists: of nodes ("gpu[003-005,7],login1") and of tasks per node ("3,1", "2(x3),1").
//
// Threads: any. Errors: Error with the list and the unexpected part.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triax::launch {

/// All nodes in order, with leading zeros: "gpu003". Several brackets in a name are combined, the last one fastest.
std::vector<std::string> parse_node_list(std::string_view list);
/// The number of tasks of each node.
std::vector<int> parse_tasks_per_node(std::string_view list);

} // namespace triax::launch
