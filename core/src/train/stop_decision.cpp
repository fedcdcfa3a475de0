#include "train/stop_decision.hpp"

#include <algorithm>

namespace triax::train {

int StopDecision::at(std::int64_t place) {
  const std::lock_guard lock(mutex_);
  if (signal_ == 0 && place > asked_) {
    signal_ = signals_.caught();
    if (signal_ != 0) last_ = place;
  }
  asked_ = std::max(asked_, place);
  return place < last_ ? 0 : signal_;
}

} // namespace triax::train
