// Whoever wants to know when the walk of a training program begins and ends: a count of allocations, a trace.
//
// Threads: called by the rank's main thread. Ownership: the caller's. Blocking: must not.
#pragma once

#include <cstdint>

namespace triax::executor {

class WalkObserver {
 public:
  virtual ~WalkObserver() = default;
  /// The step's data is in place; the first action comes next.
  virtual void walk_begins(std::int64_t step) = 0;
  /// The last action has finished.
  virtual void walk_ends(std::int64_t step) = 0;
};

} // namespace triax::executor
