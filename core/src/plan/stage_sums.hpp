// SPDX-License-Identifier: Apache-2.0
// Sums over the layers of each stage, for a plan: what its passes take, and what a rank stores and keeps.
#pragma once

#include <cstddef>
#include <vector>

#include "cost/layer_cost.hpp"
#include "executor/split.hpp"
#include "plan/layer_table.hpp"
#include "plan/shape_schedules.hpp"
#include "plan/stage_classes.hpp"

namespace triax::plan {

struct StageSums {
  struct Stage {
    cost::PassTime forward, input, weight; // per microbatch; `input` includes what is repeated, but not in R
    cost::PassTime recompute;              // of R
    double parameters = 0, boundary_bytes = 0;
    KeptBytes kept; // at least
    int rank = 0;
    double compute_s() const { return forward.compute_s + input.compute_s + weight.compute_s + recompute.compute_s; }
    double tensor_s() const { return forward.tensor_s + input.tensor_s + weight.tensor_s + recompute.tensor_s; }
    double forward_s() const { return forward.all_s(); }
  };
  std::vector<Stage> stages;
  std::vector<double> rank_parameters; // by pipeline rank; tied ones on one rank count once
  double tied = 0;                     // parameters that would count twice on one rank
  std::vector<TieRanks> ties;
  const StageMapping* mapping = nullptr;
  std::vector<executor::StageLayers> layers; // of each stage

  int ranks() const { return static_cast<int>(rank_parameters.size()); }
  std::size_t stage_of(int layer) const {
    std::size_t out = 0;
    while (layer >= layers[out].first + layers[out].count) ++out;
    return out;
  }
};

} // namespace triax::plan
