// SPDX-License-Identifier: Apache-2.0
// Observer of a training step: its start, its end, and when each action of the program ran. Used for timelines, and to
// count allocations.
//
// Threads: called by the rank's main thread. Blocking: must not. Errors: an exception ends the step.
#pragma once

#include <cstdint>

#include "triax/device.hpp"

namespace triax::executor {

/// For a transfer: when it was posted.
struct ActionTime {
  Clock::time_point began, ended;
  Clock::duration waited{}; // waiting for posted transfers before `began`
};

class WalkObserver {
 public:
  virtual ~WalkObserver() = default;
  /// The step's data is in place; the first action follows.
  virtual void walk_begins(std::int64_t step) = 0;
  /// An action was run, enqueued or posted. Called in the order of the program.
  virtual void ran(ActionId, const ActionTime&) {}
  /// The last action has finished.
  virtual void walk_ends(std::int64_t step) = 0;
};

} // namespace triax::executor
