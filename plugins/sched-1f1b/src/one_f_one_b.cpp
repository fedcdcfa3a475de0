// SPDX-License-Identifier: Apache-2.0
// sched-1f1b: one forward, one backward (PipeDream-Flush; Narayanan et al., SC'21, section 2.2.1).
// Bubble / work: (p-1)/m, as GPipe's. In flight on stage i: min(m, p-i) microbatches instead of m.
#include <algorithm>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

class OneForwardOneBackward final : public Scheduler {
 public:
  Refusals supports(const PipelineShape& shape) const override {
    if (shape.chunks != 1)
      return make_refusal(ErrorCode::kUnsupported, {"parallel.chunks"},
                          "parallel.chunks = {}: sched-1f1b gives each pipeline rank one chunk", shape.chunks)
          .with_hint("use parallel.chunks 1, or sched-interleaved");
    return {};
  }

  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, one_stage_per_rank(shape));
    const int microbatches = shape.microbatches;
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      auto& row = schedule.row(rank);
      // Warm-up: one forward for each stage after this one. The last stage starts in the steady state.
      const int warmup = std::min(microbatches, shape.pipeline - 1 - rank);
      for (int mb = 0; mb < warmup; ++mb) row.push_back(forward(rank, mb));
      // Steady state: a forward, then the oldest backward.
      for (int mb = warmup; mb < microbatches; ++mb) {
        row.push_back(forward(rank, mb));
        row.push_back(backward(rank, mb - warmup));
      }
      // Cool-down: the backwards of the microbatches that the warm-up left in flight.
      for (int mb = microbatches - warmup; mb < microbatches; ++mb) row.push_back(backward(rank, mb));
    }
    return schedule;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, OneForwardOneBackward, "sched-1f1b", "0.1.0",
             "one forward, one backward (PipeDream-Flush)", nullptr)
