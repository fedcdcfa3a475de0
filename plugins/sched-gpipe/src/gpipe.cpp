// SPDX-License-Identifier: Apache-2.0
// sched-gpipe: every forward, then every backward (Huang et al., "GPipe", NeurIPS'19).
// Bubble / work: (p-1)/m. All m microbatches are in flight.
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

class GPipe final : public Scheduler {
 public:
  Refusals supports(const PipelineShape& shape) const override {
    if (shape.chunks != 1)
      return make_refusal(ErrorCode::kUnsupported, {"parallel.chunks"},
                          "parallel.chunks = {}: sched-gpipe gives each pipeline rank one chunk", shape.chunks)
          .with_hint("use parallel.chunks 1, or sched-interleaved");
    return {};
  }

  // Backwards are in ascending order of microbatches, so that gradients are summed in the same order under every
  // schedule.
  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, one_stage_per_rank(shape));
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      for (int mb = 0; mb < shape.microbatches; ++mb) schedule.row(rank).push_back(forward(rank, mb));
      for (int mb = 0; mb < shape.microbatches; ++mb) schedule.row(rank).push_back(backward(rank, mb));
    }
    return schedule;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, GPipe, "sched-gpipe", "0.1.0", "every forward, then every backward (GPipe)", nullptr)
