#include "train/stop_decision.hpp"

#include <algorithm>

namespace triax::train {

int StopDecision::after(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (signal_ == 0 && step > asked_) {
    signal_ = signals_.caught();
    if (signal_ != 0) last_ = step;
  }
  asked_ = std::max(asked_, step);
  return step < last_ ? 0 : signal_;
}

} // namespace triax::train
