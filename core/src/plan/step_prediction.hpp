// SPDX-License-Identifier: Apache-2.0
// Predicts the step time of a run on a cluster, from the run's model and scheduler plugins and the cost model.
//
// The stages, the layout and the schedule are those of the run. Its kernel set, communicators and optimizer do not
// count: the code traits say how a training code runs the operations.
//
// Errors: Error of the plugins, or if the run has no such prediction.
#pragma once

#include "config/run_config.hpp"
#include "cost/cluster.hpp"
#include "cost/code_traits.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"

namespace triax::plan {

struct PredictionRequest {
  const config::RunConfig& run;
  const cost::Cluster& cluster;
  const cost::CodeTraits& code;
};

struct StepPrediction {
  double step_s = 0;
  double passes_s = 0;    // part of it until the end of the last pass of the slowest rank
  double reduction_s = 0; // gradients over data ranks, after the passes, and tied parameters
  double optimizer_s = 0;
  double fixed_s = 0;
  /// One transformer block and one microbatch, with collectives; the backward with what is recomputed before it.
  double block_forward_s = 0, block_backward_s = 0;
};

/// Every reason why the run's plugins do not accept its shapes.
Refusals check_prediction(const config::RunConfig& run, Log& log);

/// The run must have passed check_prediction().
StepPrediction predict_step(const PredictionRequest& request, Log& log);

/// FLOPs of a step of GPT by equation 3 of Narayanan et al., SC'21, which counts the forward twice.
double gpt_step_flops(double batch, double sequence, double layers, double hidden, double vocab);

} // namespace triax::plan
