// SPDX-License-Identifier: Apache-2.0
// The position of a running program, for other threads: heartbeats and failure reports.
//
// Threads: written by the rank's main thread, read by any. Ownership: borrows the programs.
//
// The fields of a snapshot may be of different times; `action` may belong to another program.
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
  /// Set while it waits for a transfer; kNoAction: no wait.
  void waits_for(ActionId transfer) { waited_.store(transfer, std::memory_order_relaxed); }

  struct Snapshot {
    const schedule::Program* program = nullptr; // null: no program is running
    std::int64_t step = -1;                     // -1: none has begun
    ActionId action = 0, waited = kNoAction;
  };
  Snapshot snapshot() const {
    return {program_.load(std::memory_order_acquire), step_.load(std::memory_order_relaxed),
            action_.load(std::memory_order_relaxed), waited_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<const schedule::Program*> program_{nullptr};
  std::atomic<std::int64_t> step_{-1};
  std::atomic<ActionId> action_{0}, waited_{kNoAction};
};

} // namespace triax::executor
