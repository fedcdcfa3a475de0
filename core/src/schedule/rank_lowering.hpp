// The program of one rank while it is being made: each action gets its slots, and waits for the transfers that it
// relies on.
//
// Threads: one. Ownership: owns what it builds until finish(). Blocking: never.
#pragma once

#include <array>
#include <functional>
#include <queue>
#include <vector>

#include "schedule/program.hpp"

namespace triax::schedule {

/// The slots of one pool of one stage: who has which, the most there were at once, and which transfer used each last.
class SlotPool {
 public:
  std::int32_t take(int microbatch);       // the first that is free
  std::int32_t find(int microbatch) const; // -1: it has none
  void release(int microbatch);
  /// For a slot that a transfer still reads: it is free only after the next compute action, which so need not wait.
  void cool(int microbatch);
  void thaw();
  std::int32_t size() const { return static_cast<std::int32_t>(transfer_.size()); }
  /// The transfer that last filled or read a slot.
  static constexpr ActionId kNoTransfer = ~ActionId{0};
  ActionId& transfer(std::int32_t slot) { return transfer_[static_cast<std::size_t>(slot)]; }

 private:
  std::int32_t give_up(int microbatch);

  std::vector<ActionId> transfer_; // by slot
  std::vector<std::int32_t> held_; // by microbatch; -1: none
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_;
  std::vector<std::int32_t> cooling_;
};

class RankLowering {
 public:
  /// `actions`: about how many there will be.
  RankLowering(const StageMap& stage_map, int rank, bool forward_only, Boundaries boundaries, std::size_t actions);

  /// An action of one microbatch; `peer` for transfers.
  void add(Kind kind, int stage, int microbatch, int peer = -1);
  /// An action of a stage, or of the whole rank.
  void add_ending(Kind kind, int stage = -1);
  Program finish(Program::Posts posts = Program::Posts::one_by_one);

 private:
  /// The stage must be the rank's.
  SlotPool& pool_of(int stage, Pool pool) {
    return pools_[static_cast<std::size_t>(stage_map_.number_on_rank(stage))][static_cast<std::size_t>(pool)];
  }
  void fill(ProgramAction& action, const Use& use);
  void read(ProgramAction& action, Pool pool);
  void free(const ProgramAction& action, Pool pool);
  /// Makes it wait for the transfer that used the slot last, and is the next one to use it if it is one.
  void use(ProgramAction& action, SlotPool& pool, std::int32_t slot);
  void wait_for_all(ProgramAction& action);
  void push(ProgramAction action);
  ActionId next() const { return static_cast<ActionId>(actions_.size()); }

  StageMap stage_map_;
  int rank_;
  bool forward_only_;
  Boundaries boundaries_;
  std::vector<std::array<SlotPool, kPools>> pools_; // by stage of the rank
  std::vector<SlotPool*> cooling_;                  // pools with slots that cool
  std::vector<bool> open_;                          // by action: a transfer that nobody has waited for
  ActionId waited_for_ = 0;                         // nothing before it is open
  std::vector<ProgramAction> actions_;
};

} // namespace triax::schedule
