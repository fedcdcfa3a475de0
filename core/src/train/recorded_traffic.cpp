// SPDX-License-Identifier: Apache-2.0
#include "train/recorded_traffic.hpp"

namespace triax::train {

void RecordedTraffic::add(executor::StepOutcome::Ran ran, const std::vector<CommStats>& before,
                          const std::vector<CommStats>& after) {
  using Ran = executor::StepOutcome::Ran;
  if (ran == Ran::walked) return;
  if (ran == Ran::recorded) {
    of_recorded_.clear();
    for (std::size_t i = 0; i < after.size(); ++i)
      of_recorded_.push_back({after[i].ops - before[i].ops, after[i].bytes_out - before[i].bytes_out,
                              after[i].bytes_in - before[i].bytes_in});
    beyond_.resize(of_recorded_.size());
    return;
  }
  for (std::size_t i = 0; i < of_recorded_.size(); ++i) {
    beyond_[i].ops += of_recorded_[i].ops;
    beyond_[i].bytes_out += of_recorded_[i].bytes_out;
    beyond_[i].bytes_in += of_recorded_[i].bytes_in;
  }
}

} // namespace triax::train
