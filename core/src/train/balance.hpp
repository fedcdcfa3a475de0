// SPDX-License-Identifier: Apache-2.0
// Load balance of a pipeline: what each stage stores and computes, and how much longer uneven stages take. The
// simulator compares the step with a step in which all stages compute the same.
//
// Errors: those of the constructors of layers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/run_config.hpp"
#include "schedule/program.hpp"
#include "triax/device.hpp"
#include "triax/model.hpp"

namespace triax::train {

/// Values per rank that has the stage.
struct StagePlan {
  int pipeline = 0; // pipeline rank
  int layers = 0;
  std::int64_t parameters = 0; // as stored, with padding and both sides of a tie
  /// FLOPs of one microbatch, with repeated forwards. Cheap recomputation repeats no matrix product.
  Cost flops;
  double early_flops = 0; // of flops.backward_input: what R repeats before the gradient arrives
  double all_flops() const { return flops.forward + flops.backward_input + flops.backward_weight; }
};

/// Passes take time in proportion to their FLOPs; transfers take no time; the actions at the end of a step are left
/// out.
struct StepEstimate {
  double longer = 0; // how much longer than with even stages, as a fraction of that step: 0.18 is 18 %
  /// Mean fraction of the step in which a rank does not compute: as it is, and with even stages.
  double bubble = 0, even_bubble = 0;
};

struct Balance {
  std::vector<StagePlan> stages;
  std::optional<StepEstimate> step; // empty: one stage, or the model does not report FLOPs
};

/// `training`: the verified programs of all pipeline ranks; `device`: of the kernel set.
Balance balance_of(const config::RunConfig& run, const Model& model, std::span<const schedule::Program> training,
                   DeviceKind device);

} // namespace triax::train
