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
      slots_(std::move(slots)) {
  TRIAX_REQUIRE(stages().size() == slots_.size(), "{} stages, slots of {}", stages().size(), slots_.size());
  Actions out;
  out.list = std::move(actions);
  out.recomputes.resize(stages().size());
  out.label_at.reserve(out.list.size());
  for (const ProgramAction& action : out.list) {
    out.label_at.push_back(out.labels.size());
    const std::string label = action_text(action.kind, action.stage, action.microbatch);
    out.labels.insert(out.labels.end(), label.c_str(), label.c_str() + label.size() + 1);
    if (action.kind == Kind::recompute && is_here(action.stage))
      out.recomputes[static_cast<std::size_t>(stage_map_.number_on_rank(action.stage))] = true;
  }
  actions_ = std::make_shared<const Actions>(std::move(out));
}

RankSlots Program::rank_slots() const {
  return {slots_, accumulators(), weight_slots()};
}

Program Program::with_slots(std::vector<Slots> slots) const {
  TRIAX_REQUIRE(stages().size() == slots.size(), "{} stages, slots of {}", stages().size(), slots.size());
  Program out = *this;
  out.slots_ = std::move(slots);
  return out;
}

bool Program::has(Kind kind) const {
  return std::ranges::find(actions(), kind, &ProgramAction::kind) != actions().end();
}

bool Program::recomputes(int stage) const {
  return is_here(stage) && !actions_->recomputes.empty() &&
         actions_->recomputes[static_cast<std::size_t>(stage_map_.number_on_rank(stage))];
}

int Program::accumulator(int stage) const {
  const auto of_stage = [stage](const ProgramAction& action) {
    return action.stage == stage && action.accumulator >= 0;
  };
  const auto found = std::ranges::find_if(actions(), of_stage);
  return found == actions().end() ? -1 : found->accumulator;
}

int Program::accumulators() const {
  int out = 0;
  for (const ProgramAction& action : actions()) out = std::max(out, action.accumulator + 1);
  return out;
}

int Program::weight_slots() const {
  int out = 0;
  for (const ProgramAction& action : actions()) out = std::max(out, action.weights + 1);
  return out;
}

int Program::slots(int stage, Pool pool) const {
  TRIAX_REQUIRE(is_here(stage), "stage {} is not on this rank", stage);
  return slots_[static_cast<std::size_t>(stage_map_.number_on_rank(stage))][static_cast<std::size_t>(pool)];
}

} // namespace triax::schedule
