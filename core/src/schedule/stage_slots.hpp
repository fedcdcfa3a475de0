// SPDX-License-Identifier: Apache-2.0
// Verifier of the pools of a rank, whose slots belong to whole stages: accumulators of gradients, and gathered weights.
//
// Threads: pure. Errors: violations are added to a list.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/program.hpp"
#include "schedule/violation.hpp"

namespace triax::schedule {

class StageSlots {
 public:
  explicit StageSlots(const Program& program);

  // For each action of the program, in order: first its waits, then the action.
  void wait_for(ActionId transfer) {
    if (transfer < pending_.size()) pending_[transfer] = false;
  }
  void check(std::size_t at, std::vector<Violation>& violations);
  /// After the last action: all weights must be dropped.
  void check_end(std::vector<Violation>& violations) const;

 private:
  using Rule = Violation::Rule;
  struct SlotState {
    int holds = -1;               // stage in the slot; -1: none
    ActionId touched = kNoAction; // the last transfer that used the slot
  };
  /// The slots of a pool, and the slot of each stage of the rank; -1: none.
  struct StagePool {
    Pool pool;
    std::vector<SlotState> slots;
    std::vector<int> of_stage;
  };

  int& slot_of(StagePool& pool, int stage) const {
    return pool.of_stage[static_cast<std::size_t>(program_.stage_map().number_on_rank(stage))];
  }
  Violation violation(Rule rule, std::size_t at, Pool pool, int slot, int has = 0) const;
  ActionRef ref_of(std::size_t at) const;
  void check_accumulator(std::size_t at, const ProgramAction& action, std::vector<Violation>& violations);
  void check_weights(std::size_t at, const ProgramAction& action, std::vector<Violation>& violations);
  void take(StagePool& pool, int slot, std::size_t at, const ProgramAction& action, std::vector<Violation>& violations);
  /// A pending transfer must not use the slot.
  void touch(StagePool& pool, int slot, std::size_t at, const ProgramAction& action,
             std::vector<Violation>& violations);
  void release(StagePool& pool, int stage) const;

  const Program& program_;
  StagePool accumulators_, weights_;
  std::vector<bool> pending_; // by action: a transfer that no action has waited for
};

} // namespace triax::schedule
