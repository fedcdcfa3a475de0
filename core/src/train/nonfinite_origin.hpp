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

/// "first on rank 2: the output of block 3 in microbatch 0 (5 of 64 values)". The same text on all ranks.
std::string nonfinite_origin(const RepeatedStep& of);

} // namespace triax::train
