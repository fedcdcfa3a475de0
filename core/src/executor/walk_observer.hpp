// Whoever wants to know when the walk of a training program begins and ends, and when its passes run: a count of
// allocations, a trace.
//
// Threads: called by the rank's main thread. Ownership: the caller's. Blocking: must not. Errors: what it throws ends
// the step.
#pragma once

#include <cstdint>

#include "triax/device.hpp"

namespace triax::executor {

struct PassTime {
  Clock::time_point began, ended;
  Clock::duration waited{}; // before it, for what the rank had posted
};

class WalkObserver {
 public:
  virtual ~WalkObserver() = default;
  /// The step's data is in place; the first action comes next.
  virtual void walk_begins(std::int64_t step) = 0;
  /// An F, B, I or W has been run, or enqueued.
  virtual void ran(ActionId, const PassTime&) {}
  /// The last action has finished.
  virtual void walk_ends(std::int64_t step) = 0;
};

} // namespace triax::executor
