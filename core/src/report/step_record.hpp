// SPDX-License-Identifier: Apache-2.0
// The results of one step: a line of metrics.jsonl, and the input of the progress bar.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace triax::report {

struct GroupTraffic {
  std::string group;  // "tensor", "data", "pipeline"
  std::string plugin; // the communicator
  std::uint64_t ops = 0, bytes_out = 0, bytes_in = 0;
};

struct StepRecord {
  std::int64_t step = 0; // from 1
  double loss = 0;       // mean over the tokens of the global batch; may not be finite in a skipped step
  double grad_norm = 0;
  double lr = 0;
  double tokens_per_s = 0;
  double step_ms = 0;
  double model_tflops = 0; // model FLOPs of the step / its time
  double bubble_rate = 0;
  std::vector<GroupTraffic> comm = {};
  std::optional<double> eval_loss = {}, eval_perplexity = {}; // for steps with an evaluation
  std::optional<std::string> sample = {};                     // the text of eval.sample
  std::optional<double> loss_scale = {};                      // that the step was computed with, in fp16
  bool skipped = false;                                       // no weight changed; grad_norm is not finite
};

} // namespace triax::report
