// SPDX-License-Identifier: Apache-2.0
// sched-template: GPipe in waves. Forward passes of a few microbatches, then their backward passes, then the next few.
// In flight: `wave` microbatches instead of all m, at the cost of one bubble per wave.
#include <algorithm>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_int("wave", "2", 0, 1'000'000, "microbatches of a wave; 0 takes all of a step"),
};

class Waves final : public Scheduler {
 public:
  // Only stores arguments. The options are already parsed and checked.
  explicit Waves(const PluginContext& context) : wave_(static_cast<int>(context.options.integer("wave"))) {}

  // Called before training starts. A refusal names the key, its value, the reason, and a value that works.
  Refusals supports(const PipelineShape& shape) const override {
    if (shape.chunks != 1) {
      return make_refusal(ErrorCode::kUnsupported, {"parallel.chunks"},
                          "parallel.chunks = {}: sched-template gives each pipeline rank one chunk", shape.chunks)
          .with_hint("use parallel.chunks 1");
    }
    return {};
  }

  // A pure function: the same shape gives the same rows. The backwards of a stage are in ascending order of
  // microbatches, as every schedule's must be. The core adds sends, receives and the optimizer step, and verifies the
  // result before the run.
  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, one_stage_per_rank(shape));
    const int all = shape.microbatches, wave = wave_ == 0 ? all : wave_;
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      auto& row = schedule.row(rank);
      for (int begin = 0; begin < all; begin += wave) {
        const int end = std::min(all, begin + wave);
        for (int mb = begin; mb < end; ++mb) row.push_back(forward(rank, mb));
        for (int mb = begin; mb < end; ++mb) row.push_back(backward(rank, mb));
      }
    }
    return schedule;
  }

 private:
  int wave_;
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, Waves, "sched-template", "0.1.0", "GPipe in waves", kOptions)
