// SPDX-License-Identifier: Apache-2.0
// Assigns slots and waits according to the rule table.
#include "schedule/rank_lowering.hpp"

#include <algorithm>
#include <utility>

namespace triax::schedule {

std::int32_t SlotPool::take(int microbatch) {
  std::int32_t slot = size();
  if (free_.empty()) {
    transfer_.push_back(kNoTransfer);
  } else {
    slot = free_.top();
    free_.pop();
  }
  const auto index = static_cast<std::size_t>(microbatch);
  if (held_.size() <= index) held_.resize(std::max(index + 1, 2 * held_.size()), -1);
  held_[index] = slot;
  return slot;
}

std::int32_t SlotPool::find(int microbatch) const {
  const auto index = static_cast<std::size_t>(microbatch);
  return index < held_.size() ? held_[index] : -1;
}

std::int32_t SlotPool::remove(int microbatch) {
  const std::int32_t slot = find(microbatch);
  if (slot >= 0) held_[static_cast<std::size_t>(microbatch)] = -1;
  return slot;
}

void SlotPool::release(int microbatch) {
  const std::int32_t slot = remove(microbatch);
  if (slot >= 0) free_.push(slot);
}
void SlotPool::release_later(int microbatch) {
  const std::int32_t slot = remove(microbatch);
  if (slot >= 0) deferred_.push_back(slot);
}
void SlotPool::release_deferred() {
  for (const std::int32_t slot : deferred_) free_.push(slot);
  deferred_.clear();
}

RankLowering::RankLowering(const StageMap& stage_map, int rank, bool forward_only, Boundaries boundaries,
                           Sharding sharding)
    : stage_map_(stage_map),
      rank_(rank),
      forward_only_(forward_only),
      boundaries_(boundaries),
      sharding_(sharding),
      pools_(stage_map.stages_of(rank).size()),
      recomputes_(pools_.size()) {}

Facts RankLowering::facts(int stage) const {
  return facts_of(stage_map_, stage, boundaries_, forward_only_,
                  recomputes_[static_cast<std::size_t>(stage_map_.number_on_rank(stage))]);
}

void RankLowering::add_recompute(int stage, int microbatch, bool is_split) {
  recomputes_[static_cast<std::size_t>(stage_map_.number_on_rank(stage))] = true;
  add_with(is_split ? kSplit : Facts{}, Kind::recompute, stage, microbatch, -1);
}

void RankLowering::add_with(Facts more, Kind kind, int stage, int microbatch, int peer) {
  ProgramAction action;
  action.kind = kind;
  action.stage = stage;
  action.microbatch = microbatch;
  action.peer = peer;
  const Facts all = static_cast<Facts>(facts(stage) | more);
  for (const Use& use : rule(kind).fills)
    if (use.condition.holds(all)) fill(action, use);
  for (const Use& use : rule(kind).reads)
    if (use.condition.holds(all)) read(action, use.pool);
  for (const Use& use : rule(kind).frees)
    if (use.condition.holds(all)) free(action, use.pool);
  if (sharding_ == Sharding::parameters && reads_weights(kind)) use_weights(action);
  if (scatters_gradients(sharding_) && accumulates(kind) && accumulators_.find(stage) < 0) use_accumulator(action);
  if (is_of_rows(kind)) { // and not R: the pass that follows it waits for no send of the pass before it, either
    for (SlotPool* pool : deferred_) pool->release_deferred();
    deferred_.clear();
  }
  push(std::move(action));
}

void RankLowering::add_ending(Kind kind, int stage) {
  ProgramAction action;
  action.kind = kind;
  action.stage = stage;
  if (rule(kind).joins) wait_for_all(action);
  if (kind == Kind::unshard || kind == Kind::reshard) use_weights(action);
  if (kind == Kind::reshard) weights_.release(stage);
  if (scatters_gradients(sharding_) && kind == Kind::reduce_grad) {
    use_accumulator(action);
    accumulators_.release_later(stage);
    deferred_.push_back(&accumulators_);
  }
  push(std::move(action));
}

void RankLowering::use_accumulator(ProgramAction& action) {
  const std::int32_t held = accumulators_.find(action.stage);
  action.accumulator = held < 0 ? accumulators_.take(action.stage) : held;
  use(action, accumulators_, action.accumulator);
}

/// Without a slot, verify() refuses the action.
void RankLowering::use_weights(ProgramAction& action) {
  action.weights = weights_.find(action.stage);
  if (action.weights < 0 && action.kind == Kind::unshard) action.weights = weights_.take(action.stage);
  if (action.weights >= 0) use(action, weights_, action.weights);
}

void RankLowering::push(ProgramAction action) {
  for (const ActionId waited : action.waits) open_[waited] = false;
  open_.push_back(is_transfer(action.kind));
  actions_.push_back(std::move(action));
}

void RankLowering::fill(ProgramAction& action, const Use& of) {
  SlotPool& pool = pool_of(action.stage + of.stage_offset, of.pool);
  const std::int32_t slot = pool.take(action.microbatch);
  (of.stage_offset == 0 ? action.own : action.handed)[static_cast<std::size_t>(of.pool)] = slot;
  use(action, pool, slot);
}

void RankLowering::read(ProgramAction& action, Pool pool) {
  SlotPool& of = pool_of(action.stage, pool);
  const std::int32_t slot = of.find(action.microbatch);
  action.own[static_cast<std::size_t>(pool)] = slot;
  if (slot >= 0) use(action, of, slot);
}

void RankLowering::free(const ProgramAction& action, Pool pool) {
  SlotPool& slots = pool_of(action.stage, pool);
  if (is_transfer(action.kind)) {
    slots.release_later(action.microbatch);
    deferred_.push_back(&slots);
  } else {
    slots.release(action.microbatch);
  }
}

void RankLowering::use(ProgramAction& action, SlotPool& pool, std::int32_t slot) {
  ActionId& last = pool.transfer(slot);
  if (last != SlotPool::kNoTransfer && open_[last] && std::ranges::find(action.waits, last) == action.waits.end())
    action.waits.push_back(last);
  if (is_transfer(action.kind)) last = next();
}

/// An action that joins all ranks waits for all earlier transfers.
void RankLowering::wait_for_all(ProgramAction& action) {
  for (ActionId id = waited_for_; id < open_.size(); ++id)
    if (open_[id]) action.waits.push_back(id);
  waited_for_ = next();
}

Program RankLowering::finish(Program::Posts posts) {
  std::vector<Slots> slots;
  for (const auto& pools : pools_) {
    Slots& of_stage = slots.emplace_back();
    for (std::size_t pool = 0; pool < pools.size(); ++pool) of_stage[pool] = pools[pool].size();
  }
  return {stage_map_, rank_, std::move(slots), std::move(actions_), posts, boundaries_, sharding_};
}

} // namespace triax::schedule
