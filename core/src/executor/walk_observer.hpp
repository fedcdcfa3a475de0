// SPDX-License-Identifier: Apache-2.0
// Observer of a training step: its start, its end, and when each action of the program ran. For counts of allocations
// and for timelines.
//
// Threads: called by the rank's main thread. Ownership: the caller's. Blocking: must not. Errors: what it throws ends
// the step.
#pragma once

#include <cstdint>

#include "triax/device.hpp"

namespace triax::executor {

/// Of a transfer: when it was posted.
struct ActionTime {
  Clock::time_point began, ended;
  Clock::duration waited{}; // until it began, for what the rank had posted
};

class WalkObserver {
 public:
  virtual ~WalkObserver() = default;
  /// The step's data is in place; the first action comes next.
  virtual void walk_begins(std::int64_t step) = 0;
  /// An action has been run, enqueued or posted. In the order of the program.
  virtual void ran(ActionId, const ActionTime&) {}
  /// The last action has finished.
  virtual void walk_ends(std::int64_t step) = 0;
};

} // namespace triax::executor
