// SPDX-License-Identifier: Apache-2.0
// Rows written as text, for tests: "0F0 0F1 0B0 0B1", one string per rank.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "schedule/violation.hpp"
#include "triax/scheduler.hpp"

namespace triax::test {

inline Action action_of(const std::string& cell) {
  std::size_t letter = cell.find_first_of("FBIW");
  Action action;
  action.stage = std::stoi(cell.substr(0, letter));
  action.microbatch = std::stoi(cell.substr(letter + 1));
  switch (cell[letter]) {
    case 'F':
      action.kind = ComputeKind::forward;
      break;
    case 'B':
      action.kind = ComputeKind::backward;
      break;
    case 'I':
      action.kind = ComputeKind::backward_input;
      break;
    default:
      action.kind = ComputeKind::backward_weight;
  }
  return action;
}

inline Schedule schedule_of(const PipelineShape& shape, std::vector<int> stage_rank,
                            const std::vector<std::string>& rows) {
  Schedule schedule(shape, std::move(stage_rank));
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    std::istringstream cells(rows[rank]);
    for (std::string cell; cells >> cell;) schedule.row(static_cast<int>(rank)).push_back(action_of(cell));
  }
  return schedule;
}

inline std::vector<std::string> reasons(const std::vector<schedule::Violation>& violations) {
  std::vector<std::string> out;
  for (const schedule::Violation& violation : violations) out.push_back(violation.reason());
  return out;
}

} // namespace triax::test
