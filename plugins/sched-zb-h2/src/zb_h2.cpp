// SPDX-License-Identifier: Apache-2.0
// sched-zb-h2: more forwards in the warm-up, and weight gradients W in the remaining bubble (Qi et al., "Zero bubble
// pipeline parallelism", ICLR'24, section 2.3, which writes B for the input gradient I).
// Bubble: (p-1)(F+I-2W), zero if the three are equal. In flight on every stage: min(m, 2p-1) microbatches, nearly twice
// as many as on 1F1B's first stage.
#include <algorithm>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

class ZeroBubbleH2 final : public Scheduler {
 public:
  Refusals supports(const PipelineShape& shape) const override {
    if (shape.chunks != 1)
      return make_refusal(ErrorCode::kUnsupported, {"parallel.chunks"},
                          "parallel.chunks = {}: sched-zb-h2 gives each pipeline rank one chunk", shape.chunks)
          .with_hint("use parallel.chunks 1, or sched-zb-v with parallel.chunks 2");
    return {};
  }

  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, one_stage_per_rank(shape));
    const int microbatches = shape.microbatches;
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      auto& row = schedule.row(rank);
      // Warm-up: two forwards for each stage after this one, so that no stage waits for its first gradient.
      const int warmup = std::min(microbatches, 2 * (shape.pipeline - 1 - rank));
      for (int mb = 0; mb < warmup; ++mb) row.push_back(forward(rank, mb));
      // A weight gradient follows every input gradient, delayed by two microbatches for each stage before this one.
      const int behind = 2 * rank;
      for (int mb = 0; mb < microbatches; ++mb) {
        if (warmup + mb < microbatches) row.push_back(forward(rank, warmup + mb));
        row.push_back(backward_input(rank, mb));
        if (mb >= behind) row.push_back(backward_weight(rank, mb - behind));
      }
      // The delayed weight gradients run while earlier stages finish.
      for (int mb = std::max(0, microbatches - behind); mb < microbatches; ++mb)
        row.push_back(backward_weight(rank, mb));
    }
    return schedule;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, ZeroBubbleH2, "sched-zb-h2", "0.1.0",
             "no bubble where F, I and W take equal times, at twice 1F1B's memory (ZB-H2)", nullptr)
