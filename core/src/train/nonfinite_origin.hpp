// SPDX-License-Identifier: Apache-2.0
// Where the values of a step were not finite first: all ranks compute the step again, and agree on the first.
//
// Threads: the main threads of all ranks, at the same point. Blocking: computes a step; waits for the other ranks.
// Errors: those of a step, and of the store.
#pragma once

#include <cstdint>
#include <string>

#include "executor/executor.hpp"
#include "train/agreement.hpp"
#include "triax/communicator.hpp"

namespace triax::train {

struct RepeatedStep {
  executor::Executor& executor;
  Device& device;
  Stream& stream;
  std::int64_t step = 0; // that has just ended; 0: evaluation
  int layers = 0;        // of the whole model
  int rank = 0, world = 1;
  Agreement& agreement;
  Store& store;
  std::string key; // key in the store, used once
  double timeout_s = 0;
};

/// The next step if no step has changed the weight since it was read.
inline constexpr const char* kOtherCheckpoint =
    "the weight is as the checkpoint has it: use another checkpoint; if it is finite there, set train.precision to a "
    "type in which it does not overflow";

struct NonfiniteOrigin {
  std::string text; // "first on rank 2: the output of block 3 in microbatch 0 (5 of 64 values)"
  bool is_weight = false;
};

/// The same on all ranks.
NonfiniteOrigin nonfinite_origin(const RepeatedStep& of);

} // namespace triax::train
