// SPDX-License-Identifier: Apache-2.0
// The recomputation of a stage with memory.recompute = "optimal", for reports.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "train/rank_setup.hpp"

namespace triax::train {

struct StageRecomputation {
  /// Equal blocks in a row.
  struct Blocks {
    int count = 0;
    std::vector<std::string> steps; // names of the steps that run again; none if the blocks keep everything
  };
  int stage = 0;
  std::vector<Blocks> blocks;
  double forward_fraction = 0; // modelled time of the repeated steps, as a fraction of that of the blocks' forward
};

/// One entry for each stage with "optimal", in order.
std::vector<StageRecomputation> recomputation_of(const Programs& programs);

/// "stage 0: 4 blocks recompute attention.norm, mlp.gelu; 2 blocks keep all; 0.5 % of its blocks' forward by the cost
/// model".
std::string to_text(const StageRecomputation& recomputation);

} // namespace triax::train
