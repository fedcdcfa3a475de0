// SPDX-License-Identifier: Apache-2.0
#include "schedule/slot_count.hpp"

#include <algorithm>
#include <cstddef>

namespace triax::schedule {

bool SlotCount::Counted::holds(int number) const {
  const auto index = static_cast<std::size_t>(number);
  return index < is_held.size() && is_held[index];
}

void SlotCount::Counted::take(int number) {
  const auto index = static_cast<std::size_t>(number);
  if (is_held.size() <= index) is_held.resize(std::max(index + 1, 2 * is_held.size()));
  is_held[index] = true;
  if (free > 0)
    --free;
  else
    ++size;
}

bool SlotCount::Counted::remove(int number) {
  if (!holds(number)) return false;
  is_held[static_cast<std::size_t>(number)] = false;
  return true;
}

SlotCount::SlotCount(const StageMap& stage_map, int rank, bool forward_only, Boundaries boundaries, Sharding sharding)
    : stage_map_(stage_map),
      sharding_(sharding),
      pools_(stage_map.stages_of(rank).size() * kPools),
      steps_(stage_map.stages_of(rank).size()) {
  for (const int stage : stage_map_.stages_of(rank)) {
    const Facts facts = facts_of(stage_map_, stage, boundaries, forward_only, false);
    for (const Rule& of : rules()) {
      std::vector<Step>& steps = steps_[number_of(stage)][static_cast<std::size_t>(of.kind)];
      const auto add_steps = [&](std::span<const Use> uses, bool takes) {
        for (const Use& use : uses)
          if (use.condition.holds(facts))
            steps.push_back({number_of(stage + use.stage_offset) * kPools + static_cast<std::size_t>(use.pool), takes});
      };
      add_steps(of.fills, true);
      add_steps(of.frees, false);
    }
  }
}

void SlotCount::release_later(Counted& pool, int number) {
  if (!pool.remove(number)) return;
  ++pool.deferred;
  deferred_.push_back(&pool);
}

void SlotCount::release_deferred() {
  for (Counted* const pool : deferred_) {
    pool->free += pool->deferred;
    pool->deferred = 0;
  }
  deferred_.clear();
}

void SlotCount::add(Kind kind, int stage, int microbatch, int) {
  for (const Step& step : steps_[number_of(stage)][static_cast<std::size_t>(kind)]) {
    Counted& pool = pools_[step.pool];
    if (step.takes) {
      pool.take(microbatch);
    } else if (is_transfer(kind)) {
      release_later(pool, microbatch);
    } else if (pool.remove(microbatch)) {
      ++pool.free;
    }
  }
  if (scatters_gradients(sharding_) && accumulates(kind) && !accumulators_.holds(stage)) accumulators_.take(stage);
  if (is_of_rows(kind)) release_deferred();
}

void SlotCount::add_ending(Kind kind, int stage) {
  if (kind == Kind::unshard && !weights_.holds(stage)) weights_.take(stage);
  if (kind == Kind::reshard && weights_.remove(stage)) ++weights_.free;
  if (scatters_gradients(sharding_) && kind == Kind::reduce_grad) release_later(accumulators_, stage);
}

RankSlots SlotCount::slots() const {
  RankSlots out{{}, accumulators_.size, weights_.size};
  for (std::size_t first = 0; first < pools_.size(); first += kPools) {
    Slots& of_stage = out.of_stages.emplace_back();
    for (std::size_t pool = 0; pool < of_stage.size(); ++pool) of_stage[pool] = pools_[first + pool].size;
  }
  return out;
}

} // namespace triax::schedule
