// SPDX-License-Identifier: Apache-2.0
// sched-zb-h1: 1F1B with weight gradients W moved after the input gradients I, into the bubble (Qi et al., "Zero bubble
// pipeline parallelism", ICLR'24, section 2.3, which writes B for I).
// Bubble: (p-1)(F+I-W); 1F1B has (p-1)(F+I+W). In flight on every stage: min(m, p) microbatches, as on 1F1B's first
// stage.
#include <algorithm>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

class ZeroBubbleH1 final : public Scheduler {
 public:
  Refusals supports(const PipelineShape& shape) const override {
    if (shape.chunks != 1)
      return make_refusal(ErrorCode::kUnsupported, {"parallel.chunks"},
                          "parallel.chunks = {}: sched-zb-h1 gives each pipeline rank one chunk", shape.chunks)
          .with_hint("use parallel.chunks 1, or sched-zb-v with parallel.chunks 2");
    return {};
  }

  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, one_stage_per_rank(shape));
    const int microbatches = shape.microbatches;
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      auto& row = schedule.row(rank);
      // Warm-up as in 1F1B: one forward for each stage after this one.
      const int warmup = std::min(microbatches, shape.pipeline - 1 - rank);
      for (int mb = 0; mb < warmup; ++mb) row.push_back(forward(rank, mb));
      // A weight gradient follows every input gradient, delayed by one microbatch for each stage before this one.
      for (int mb = 0; mb < microbatches; ++mb) {
        if (warmup + mb < microbatches) row.push_back(forward(rank, warmup + mb));
        row.push_back(backward_input(rank, mb));
        if (mb >= rank) row.push_back(backward_weight(rank, mb - rank));
      }
      // The delayed weight gradients run while earlier stages finish.
      for (int mb = std::max(0, microbatches - rank); mb < microbatches; ++mb) row.push_back(backward_weight(rank, mb));
    }
    return schedule;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, ZeroBubbleH1, "sched-zb-h1", "0.1.0",
             "1F1B with weight gradients in the bubble, at 1F1B's memory (ZB-H1)", nullptr)
