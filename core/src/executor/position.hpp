// SPDX-License-Identifier: Apache-2.0
// Where a walk is, for another thread to read: the heartbeat, the report of a failure.
//
// Threads: written by the rank's main thread, read by any. Ownership: borrows the programs. Blocking: never. Errors:
// none. What is read together need not have been written together; an action's number may be one of another program.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "schedule/program.hpp"

namespace triax::executor {

class Position {
 public:
  /// `step` 0: evaluation.
  void begins(const schedule::Program& program, std::int64_t step) {
    step_.store(step, std::memory_order_relaxed);
    action_.store(0, std::memory_order_relaxed);
    program_.store(&program, std::memory_order_release);
  }
  void ends() { program_.store(nullptr, std::memory_order_release); }
  void at(ActionId action) { action_.store(action, std::memory_order_relaxed); }
  /// For a transfer, or kNoAction: no longer.
  void waits_for(ActionId transfer) { waited_.store(transfer, std::memory_order_relaxed); }

  struct Seen {
    const schedule::Program* program = nullptr; // null: between two walks
    std::int64_t step = -1;                     // -1: none has begun
    ActionId action = 0, waited = kNoAction;
  };
  Seen seen() const {
    return {program_.load(std::memory_order_acquire), step_.load(std::memory_order_relaxed),
            action_.load(std::memory_order_relaxed), waited_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<const schedule::Program*> program_{nullptr};
  std::atomic<std::int64_t> step_{-1};
  std::atomic<ActionId> action_{0}, waited_{kNoAction};
};

} // namespace triax::executor
