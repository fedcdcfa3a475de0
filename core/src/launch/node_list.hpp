// SPDX-License-Identifier: Apache-2.0
// Slurm's compressed lists: of nodes ("gpu[003-005,7],login1") and of tasks per node ("3,1", "2(x3),1").
//
// Threads: any. Ownership: values. Blocking: never. Errors: Error quoting the list and what cannot be read in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace triax::launch {

/// Every node in order; zeros in front are kept: "gpu003". Several brackets in a name multiply, the last one fastest.
std::vector<std::string> parse_node_list(std::string_view list);
/// The number of tasks of each node.
std::vector<int> parse_tasks_per_node(std::string_view list);

} // namespace triax::launch
