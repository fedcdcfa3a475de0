// SPDX-License-Identifier: Apache-2.0
// The reductions of a rank's gradients: of each bucket over its axes, and of a tied parameter over the pipeline ranks
// that have it.
//
// Threads: the rank's main thread. Ownership: borrows device, groups and state. Blocking: never. Errors: those of the
// communicators.
#pragma once

#include <vector>

#include "executor/rank_state.hpp"
#include "triax/communicator.hpp"

namespace triax::executor {

class GradientReductions {
 public:
  GradientReductions(Device& device, const Groups& groups, RankState& state);

  /// Posts the all-reduces or reduce-scatters of a stage's gradients on `stream`.
  void reduce(int stage, Stream& stream, ActionId id);
  /// Exchanges the accumulators of tied parameters with other pipeline ranks, and adds all accumulators of a parameter.
  void reduce_tied(Stream& stream, ActionId id);

 private:
  void reduce(const Bucket& bucket, Stream& stream, ActionId id);
  void list_tied();

  Device& device_;
  const Groups& groups_;
  RankState& state_;
  std::vector<Transfer> tied_; // accumulators of tied parameters, to and from other pipeline ranks
};

} // namespace triax::executor
