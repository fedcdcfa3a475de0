// SPDX-License-Identifier: Apache-2.0
// Traffic of captured steps: launching a graph moves the same bytes as the captured step, but communicators do not
// count them.
//
// Threads: the rank's main thread.
#pragma once

#include <cstddef>
#include <vector>

#include "executor/executor.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

class RecordedTraffic {
 public:
  /// Call it after each step with how the step ran, and the counters of each communicator before and after it, always
  /// in the same order.
  void add(executor::StepOutcome::Ran ran, const std::vector<CommStats>& before, const std::vector<CommStats>& after);
  /// The counts to add to those of the communicator itself.
  CommStats beyond(std::size_t communicator) const {
    return communicator < beyond_.size() ? beyond_[communicator] : CommStats{};
  }

 private:
  std::vector<CommStats> of_recorded_, beyond_;
};

} // namespace triax::train
