// Giving out slots and waits, both from the rule table.
#include "schedule/rank_lowering.hpp"

#include <algorithm>
#include <utility>

namespace triax::schedule {

std::int32_t SlotPool::take(int microbatch) {
  std::int32_t slot = size_;
  if (free_.empty()) {
    ++size_;
  } else {
    slot = *free_.begin();
    free_.erase(free_.begin());
  }
  held_[microbatch] = slot;
  return slot;
}

std::int32_t SlotPool::find(int microbatch) const {
  const auto found = held_.find(microbatch);
  return found == held_.end() ? -1 : found->second;
}

void SlotPool::release(int microbatch) {
  const auto found = held_.find(microbatch);
  if (found == held_.end()) return;
  free_.insert(found->second);
  held_.erase(found);
}
void SlotPool::cool(int microbatch) {
  const auto found = held_.find(microbatch);
  cooling_.push_back(found->second);
  held_.erase(found);
}
void SlotPool::thaw() {
  free_.insert(cooling_.begin(), cooling_.end());
  cooling_.clear();
}

RankLowering::RankLowering(const StageMap& stage_map, int rank, bool forward_only)
    : stage_map_(stage_map), rank_(rank), forward_only_(forward_only) {}

void RankLowering::add(Kind kind, int stage, int microbatch, int peer) {
  ProgramAction action;
  action.kind = kind;
  action.stage = stage;
  action.microbatch = microbatch;
  action.peer = peer;
  for (const Use& use : rule(kind).fills)
    if (stage_map_.holds(use.condition, stage)) fill(action, use);
  for (const Pool pool : rule(kind).reads) read(action, pool);
  for (const Pool pool : frees(kind, forward_only_)) free(action, pool);
  if (runs_layers(kind)) {
    for (SlotPool* pool : cooling_) pool->thaw();
    cooling_.clear();
  }
  push(std::move(action));
}

void RankLowering::add_ending(Kind kind, int stage) {
  ProgramAction action;
  action.kind = kind;
  action.stage = stage;
  if (rule(kind).joins) wait_for_all(action);
  push(std::move(action));
}

void RankLowering::push(ProgramAction action) {
  if (is_transfer(action.kind)) open_.insert(next());
  for (const ActionId waited : action.waits) {
    open_.erase(waited);
    std::erase_if(in_transfer_, [waited](const auto& entry) { return entry.second == waited; });
  }
  actions_.push_back(std::move(action));
}

void RankLowering::fill(ProgramAction& action, const Use& use) {
  const int stage = action.stage + use.stage_offset;
  const std::int32_t slot = pool_of(stage, use.pool).take(action.microbatch);
  (use.stage_offset == 0 ? action.own : action.handed)[static_cast<std::size_t>(use.pool)] = slot;
  wait_for(action, {stage, use.pool, slot});
  if (is_transfer(action.kind)) in_transfer_[{stage, use.pool, slot}] = next();
}

void RankLowering::read(ProgramAction& action, Pool pool) {
  const std::int32_t slot = pool_of(action.stage, pool).find(action.microbatch);
  action.own[static_cast<std::size_t>(pool)] = slot;
  if (slot < 0) return;
  wait_for(action, {action.stage, pool, slot});
  if (is_transfer(action.kind)) in_transfer_[{action.stage, pool, slot}] = next();
}

void RankLowering::free(const ProgramAction& action, Pool pool) {
  SlotPool& slots = pool_of(action.stage, pool);
  if (is_transfer(action.kind)) {
    slots.cool(action.microbatch);
    cooling_.push_back(&slots);
  } else {
    slots.release(action.microbatch);
  }
}

void RankLowering::wait_for(ProgramAction& action, const SlotKey& slot) {
  const auto found = in_transfer_.find(slot);
  if (found == in_transfer_.end() || std::ranges::find(action.waits, found->second) != action.waits.end()) return;
  action.waits.push_back(found->second);
}

/// What joins the ranks comes after everything that was posted.
void RankLowering::wait_for_all(ProgramAction& action) {
  action.waits.assign(open_.begin(), open_.end());
}

Program RankLowering::finish() {
  std::vector<Slots> sizes;
  for (const int stage : stage_map_.stages_of(rank_)) {
    Slots& of_stage = sizes.emplace_back();
    for (int pool = 0; pool < kPools; ++pool)
      of_stage[static_cast<std::size_t>(pool)] = pool_of(stage, static_cast<Pool>(pool)).size();
  }
  return {stage_map_, rank_, std::move(sizes), std::move(actions_)};
}

} // namespace triax::schedule
