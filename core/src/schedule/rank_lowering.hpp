// The program of one rank while it is being made: each action gets its slots, and waits for the transfers that it
// relies on.
//
// Threads: one. Ownership: owns what it builds until finish(). Blocking: never.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "schedule/program.hpp"

namespace triax::schedule {

/// The slots of one pool of one stage: who has which, and the most there were at once.
class SlotPool {
 public:
  std::int32_t take(int microbatch);
  std::int32_t find(int microbatch) const; // -1: it has none
  void release(int microbatch);
  /// For a slot that a transfer still reads: it is free only after the next compute action, which so need not wait.
  void cool(int microbatch);
  void thaw();
  std::int32_t size() const { return size_; }

 private:
  std::int32_t size_ = 0;
  std::map<int, std::int32_t> held_; // by microbatch
  std::set<std::int32_t> free_;
  std::vector<std::int32_t> cooling_;
};

class RankLowering {
 public:
  RankLowering(const StageMap& stage_map, int rank, bool forward_only);

  /// An action of one microbatch; `peer` for transfers.
  void add(Kind kind, int stage, int microbatch, int peer = -1);
  /// An action of a stage, or of the whole rank.
  void add_ending(Kind kind, int stage = -1);
  Program finish();

 private:
  using SlotKey = std::tuple<int, Pool, std::int32_t>; // stage, pool, slot
  SlotPool& pool_of(int stage, Pool pool) { return pools_[{stage, pool}]; }
  void fill(ProgramAction& action, const Use& use);
  void read(ProgramAction& action, Pool pool);
  void free(const ProgramAction& action, Pool pool);
  void wait_for(ProgramAction& action, const SlotKey& slot);
  void wait_for_all(ProgramAction& action);
  void push(ProgramAction action);
  ActionId next() const { return static_cast<ActionId>(actions_.size()); }

  StageMap stage_map_;
  int rank_;
  bool forward_only_;
  std::map<std::pair<int, Pool>, SlotPool> pools_;
  std::vector<SlotPool*> cooling_;          // pools with slots that cool
  std::map<SlotKey, ActionId> in_transfer_; // the transfer that last filled or read a slot, until waited for
  std::set<ActionId> open_;                 // transfers that nobody has waited for
  std::vector<ProgramAction> actions_;
};

} // namespace triax::schedule
