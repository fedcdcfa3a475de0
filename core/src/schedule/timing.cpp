// SPDX-License-Identifier: Apache-2.0
// Computes end times as longest paths in the graph of the rows.
#include "schedule/timing.hpp"

#include "schedule/graph.hpp"

namespace triax::schedule {

std::vector<std::vector<std::int64_t>> end_times(const std::vector<std::vector<Action>>& rows,
                                                 const StageMap& stage_map) {
  const auto passes = [&rows](std::size_t rank, std::size_t at) {
    return Graph::Lengths{rows[rank][at].kind == ComputeKind::backward ? 2.0 : 1.0};
  };
  std::vector<std::vector<std::int64_t>> out;
  out.reserve(rows.size());
  for (const std::vector<Graph::Time>& row : Graph(rows, stage_map).times(passes)) {
    std::vector<std::int64_t>& ends = out.emplace_back();
    ends.reserve(row.size());
    for (const Graph::Time& time : row) ends.push_back(static_cast<std::int64_t>(time.end)); // times are integers
  }
  return out;
}

} // namespace triax::schedule
