// SPDX-License-Identifier: Apache-2.0
// Counts the slots that RankLowering assigns, without actions and waits: a search counts those of all ranks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedule/program.hpp"

namespace triax::schedule {

/// Calls are those of RankLowering, in the same order. R takes no slot, so it is not added.
class SlotCount {
 public:
  SlotCount(const StageMap& stage_map, int rank, bool forward_only, Boundaries boundaries, Sharding sharding);

  void add(Kind kind, int stage, int microbatch, int peer = -1);
  void add_ending(Kind kind, int stage = -1);
  RankSlots slots() const;

 private:
  /// The slots of a pool: those that were needed at once, and those of them that are free.
  struct Counted {
    std::vector<bool> is_held{}; // by microbatch
    std::int32_t size = 0, free = 0, deferred = 0;
    bool holds(int number) const;
    void take(int number);
    bool remove(int number); // false: it has none
  };
  /// A pool that an action takes or releases a slot of.
  struct Step {
    std::size_t pool = 0;
    bool takes = false;
  };

  std::size_t number_of(int stage) const { return static_cast<std::size_t>(stage_map_.number_on_rank(stage)); }
  void release_later(Counted& pool, int number);
  void release_deferred();

  StageMap stage_map_;
  Sharding sharding_;
  std::vector<Counted> pools_; // by stage of the rank, and pool
  Counted accumulators_, weights_;
  std::vector<std::array<std::vector<Step>, kKinds>> steps_; // by stage of the rank, and kind
  std::vector<Counted*> deferred_;                           // pools with deferred releases
};

} // namespace triax::schedule
