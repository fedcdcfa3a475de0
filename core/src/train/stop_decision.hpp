// Whether to stop after a step, for all ranks of a process alike: they meet in every step, so none may leave before
// another.
//
// Threads: any; each rank asks on its own. Ownership: borrows the signals. Blocking: never.
// Whoever asks first about a step decides for all. Between processes the answer will have to travel with what ranks
// gather in each step; the question stays the same.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>

#include "train/stop_signals.hpp"

namespace triax::train {

class StopDecision {
 public:
  explicit StopDecision(const StopSignals& signals) : signals_(signals) {}

  /// The number of the signal for which all ranks stop after step `step`, or 0. Every rank asks once after each of its
  /// steps, and about step 0 before the first.
  int after(std::int64_t step);

 private:
  const StopSignals& signals_;
  std::mutex mutex_; // of what follows
  std::int64_t asked_ = -1;
  std::int64_t last_ = std::numeric_limits<std::int64_t>::max(); // no step comes after this one
  int signal_ = 0;
};

} // namespace triax::train
