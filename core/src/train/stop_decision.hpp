// Whether to stop here, for all ranks of a process alike: they meet in every step, so none may leave before another.
//
// Threads: any; each rank asks on its own. Ownership: borrows the signals. Blocking: never.
// Whoever comes first to a place decides for all. Between processes the answer will have to travel with what ranks
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

  /// The number of the signal for which all ranks stop at `place`, or 0. Places (before the first step, after a step,
  /// between two batches of an evaluation) are numbered as every rank comes to them; each asks about each of its own.
  int at(std::int64_t place);

 private:
  const StopSignals& signals_;
  std::mutex mutex_; // of what follows
  std::int64_t asked_ = -1;
  std::int64_t last_ = std::numeric_limits<std::int64_t>::max(); // nothing comes after this place
  int signal_ = 0;
};

} // namespace triax::train
