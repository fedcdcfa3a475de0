// SPDX-License-Identifier: Apache-2.0
// The values that PlanCosts::bounds() keeps between calls: plans that differ in few settings follow each other.
#pragma once

#include <array>
#include <iterator>
#include <optional>
#include <vector>

#include "plan/plan_costs.hpp"

namespace triax::plan {

/// The bounds of a pipeline rank, for a microbatch.
struct PlanCosts::RankBounds {
  double before = 0, after = 0; // forwards of the stages before its lowest stage, and their backwards
  double work = 0, parameters = 0, kept = 0;
  double lowest_parameters = 0, largest_parameters = 0; // of its lowest and its largest stage
};

struct PlanCosts::StageBounds {
  Recompute recompute = Recompute::none;
  bool sequence = false;
  bool is_accepted = false; // the split
  std::vector<RankBounds> ranks{};
  double tied_s = 0, tied = 0; // tied: parameters that would count twice on one rank
};

struct PlanCosts::LastBounds {
  TrainingPlan group;
  bool is_accepted = false;
  const StageMapping* mapping = nullptr; // if it is accepted
  struct LayerBounds {
    bool is_accepted = false;
    const LayerTotals* totals = nullptr; // if they are accepted
  };
  /// By recomputation, then by sequence parallelism.
  std::array<std::array<std::optional<LayerBounds>, 2>, std::size(kPlannedRecomputes)> layers;
  std::array<std::optional<StageBounds>, 2> of_stages; // the last even and balanced ones
};

} // namespace triax::plan
