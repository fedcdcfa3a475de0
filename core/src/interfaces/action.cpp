// SPDX-License-Identifier: Apache-2.0
#include "triax/scheduler.hpp"

namespace triax {

Scheduler::~Scheduler() = default;

std::string to_text(const Action& action) {
  static constexpr char kLetters[] = {'F', 'B', 'I', 'W'};
  std::string out =
      std::to_string(action.stage) + kLetters[static_cast<int>(action.kind)] + std::to_string(action.microbatch);
  if (action.slice != 0) out += "." + std::to_string(action.slice);
  if (action.replica != 0) out += "'";
  return out;
}

std::vector<int> one_stage_per_rank(const PipelineShape& shape) {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(shape.pipeline));
  for (int stage = 0; stage < shape.pipeline; ++stage) ranks.push_back(stage);
  return ranks;
}

} // namespace triax
