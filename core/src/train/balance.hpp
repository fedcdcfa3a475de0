// SPDX-License-Identifier: Apache-2.0
// How even the stages of a pipeline are, and what it costs that they are not: what each stage stores and computes, and
// the step that the simulator makes of that beside the step of stages that all compute the same.
//
// Threads: one. Ownership: values. Blocking: computes. Errors: what layers throw when they are made.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/run_config.hpp"
#include "schedule/program.hpp"
#include "triax/model.hpp"

namespace triax::train {

/// On each rank that has it.
struct StagePlan {
  int pipeline = 0; // pipeline rank
  int layers = 0;
  std::int64_t parameters = 0; // as stored, with padding and both sides of a tie
  Cost flops;                  // of one microbatch
  double all_flops() const { return flops.forward + flops.backward_input + flops.backward_weight; }
};

/// Passes take as long as their FLOPs, transfers take no time, and what ends a step is left out.
struct StepEstimate {
  double longer = 0;              // than with even stages, as a part of that step: 0.18 is 18 %
  double idle = 0, even_idle = 0; // part of the step that ranks are idle, their mean: as it is, and with even stages
};

struct Balance {
  std::vector<StagePlan> stages;
  std::optional<StepEstimate> step; // empty: of one stage, or the model does not say what its layers cost
};

/// `training`: the verified programs of all pipeline ranks.
Balance balance_of(const config::RunConfig& run, const Model& model, std::span<const schedule::Program> training);

} // namespace triax::train
