// SPDX-License-Identifier: Apache-2.0
// Size of a recomputation group, for memory.recompute_layers = 0.
//
// Threads: pure functions.
#pragma once

#include <span>

#include "triax/model.hpp"

namespace triax::executor {

/// The blocks of a stage, and the microbatches for which a group of them keeps its input.
struct RecomputedStage {
  int blocks = 0, microbatches = 0;
};

/// The number of blocks per group with which the stages of a rank need least memory: a group keeps an input for each
/// microbatch, and the stash of all its blocks exists once. Without rounding, this is the square root of Narayanan et
/// al. (SC'21, section 3.5). The same on all tensor ranks that get the same `block`. `parts` and `on_host`: as of
/// StageRecompute; what is kept on the host needs no memory of the device.
int best_group_size(const Layer& block, std::span<const RecomputedStage> stages, int parts = 1, bool on_host = false);

} // namespace triax::executor
