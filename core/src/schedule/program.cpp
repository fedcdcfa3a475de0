// SPDX-License-Identifier: Apache-2.0
// Labels and lookups of a program.
#include "schedule/program.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::schedule {

Program::Program(StageMap stage_map, int rank, std::vector<Slots> slots, std::vector<ProgramAction> actions,
                 Posts posts, Boundaries boundaries, Sharding sharding)
    : stage_map_(std::move(stage_map)),
      rank_(rank),
      posts_(posts),
      boundaries_(boundaries),
      sharding_(sharding),
      slots_(std::move(slots)),
      actions_(std::move(actions)) {
  TRIAX_REQUIRE(stages().size() == slots_.size(), "{} stages, slots of {}", stages().size(), slots_.size());
  label_at_.reserve(actions_.size());
  for (const ProgramAction& action : actions_) {
    label_at_.push_back(labels_.size());
    const std::string label = action_text(action.kind, action.stage, action.microbatch);
    labels_.insert(labels_.end(), label.c_str(), label.c_str() + label.size() + 1);
  }
}

bool Program::has(Kind kind) const {
  return std::ranges::find(actions_, kind, &ProgramAction::kind) != actions_.end();
}

int Program::accumulator(int stage) const {
  const auto of_stage = [stage](const ProgramAction& action) {
    return action.stage == stage && action.accumulator >= 0;
  };
  const auto found = std::ranges::find_if(actions_, of_stage);
  return found == actions_.end() ? -1 : found->accumulator;
}

int Program::accumulators() const {
  int out = 0;
  for (const ProgramAction& action : actions_) out = std::max(out, action.accumulator + 1);
  return out;
}

int Program::weight_slots() const {
  int out = 0;
  for (const ProgramAction& action : actions_) out = std::max(out, action.weights + 1);
  return out;
}

int Program::slots(int stage, Pool pool) const {
  TRIAX_REQUIRE(stage >= 0 && stage < stage_map_.stages() && stage_map_.rank_of(stage) == rank_,
                "stage {} is not on this rank", stage);
  return slots_[static_cast<std::size_t>(stage_map_.number_on_rank(stage))][static_cast<std::size_t>(pool)];
}

} // namespace triax::schedule
