// SPDX-License-Identifier: Apache-2.0
// What recorded steps move: a step that is launched again moves what the one did that was recorded, and no communicator
// hears of it.
//
// Threads: the rank's main thread. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/executor.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

class RecordedTraffic {
 public:
  /// After each step: how it ran, and what each communicator counted before and after it, always in one order.
  void add(executor::StepOutcome::Ran ran, const std::vector<CommStats>& before, const std::vector<CommStats>& after);
  /// What a communicator's own count lacks.
  CommStats beyond(std::size_t communicator) const {
    return communicator < beyond_.size() ? beyond_[communicator] : CommStats{};
  }

 private:
  std::vector<CommStats> of_recorded_, beyond_;
};

} // namespace triax::train
