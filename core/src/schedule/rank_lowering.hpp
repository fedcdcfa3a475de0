// SPDX-License-Identifier: Apache-2.0
// Builds the program of one rank: assigns slots to each action, and adds waits for the transfers that it depends on.
#pragma once

#include <array>
#include <functional>
#include <queue>
#include <vector>

#include "schedule/program.hpp"

namespace triax::schedule {

/// The slots of one pool of a stage: which microbatch is in which slot, and the last transfer that used each. In the
/// pools of accumulators and weights, a stage has the place of a microbatch.
class SlotPool {
 public:
  std::int32_t take(int microbatch);       // the first free slot
  std::int32_t find(int microbatch) const; // -1: the microbatch has none
  void release(int microbatch);
  /// Releases a slot that a transfer still reads: it becomes free after the next pass, so that pass need not wait.
  void release_later(int microbatch);
  void release_deferred();
  std::int32_t size() const { return static_cast<std::int32_t>(transfer_.size()); }
  /// The last transfer that filled or read a slot.
  static constexpr ActionId kNoTransfer = ~ActionId{0};
  ActionId& transfer(std::int32_t slot) { return transfer_[static_cast<std::size_t>(slot)]; }

 private:
  /// Removes the microbatch, and returns its slot, or -1.
  std::int32_t remove(int microbatch);

  std::vector<ActionId> transfer_; // by slot
  std::vector<std::int32_t> held_; // by microbatch; -1: none
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_;
  std::vector<std::int32_t> deferred_;
};

class RankLowering {
 public:
  RankLowering(const StageMap& stage_map, int rank, bool forward_only, Boundaries boundaries, Sharding sharding);

  /// The number of actions, approximately.
  void reserve(std::size_t actions) { actions_.reserve(actions); }

  /// The facts of a stage of this rank, in this program.
  Facts facts(int stage) const;
  /// An action of one microbatch; `peer` for transfers.
  void add(Kind kind, int stage, int microbatch, int peer = -1) { add_with({}, kind, stage, microbatch, peer); }
  /// R of one microbatch; `is_split`: I follows, and not B.
  void add_recompute(int stage, int microbatch, bool is_split);
  /// Adds an action of a stage or of the whole rank.
  void add_ending(Kind kind, int stage = -1);
  Program finish(Program::Posts posts = Program::Posts::one_by_one);

 private:
  /// The stage must be on this rank.
  SlotPool& pool_of(int stage, Pool pool) {
    return pools_[static_cast<std::size_t>(stage_map_.number_on_rank(stage))][static_cast<std::size_t>(pool)];
  }
  void add_with(Facts more, Kind kind, int stage, int microbatch, int peer);
  void fill(ProgramAction& action, const Use& use);
  void read(ProgramAction& action, Pool pool);
  void free(const ProgramAction& action, Pool pool);
  /// Adds a wait for the last transfer that used the slot. If the action is a transfer, it becomes the last one.
  void use(ProgramAction& action, SlotPool& pool, std::int32_t slot);
  void wait_for_all(ProgramAction& action);
  /// The slot of the stage's accumulator; the first action of a stage takes one.
  void use_accumulator(ProgramAction& action);
  /// The slot of the stage's weights, which UNSHARD takes.
  void use_weights(ProgramAction& action);
  void push(ProgramAction action);
  ActionId next() const { return static_cast<ActionId>(actions_.size()); }

  StageMap stage_map_;
  int rank_;
  bool forward_only_;
  Boundaries boundaries_;
  Sharding sharding_;
  std::vector<std::array<SlotPool, kPools>> pools_; // by stage of the rank
  std::vector<bool> recomputes_;                    // by stage of the rank: R was added
  SlotPool accumulators_, weights_;                 // by stage
  std::vector<SlotPool*> deferred_;                 // pools with deferred releases
  std::vector<bool> open_;                          // by action: a transfer that no action has waited for
  ActionId waited_for_ = 0;                         // no earlier action is open
  std::vector<ProgramAction> actions_;
};

} // namespace triax::schedule
