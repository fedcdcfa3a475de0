// SPDX-License-Identifier: Apache-2.0
// sched-breadth-first: all microbatches of a chunk before the next chunk (Lamy-Poirier, "Breadth-first pipeline
// parallelism", MLSys'23).
// Bubble / work: (p-1)/(v*m) for m >= p, 1/v of GPipe's. In flight: all m*v microbatch chunks.
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

/// Stage s on rank s mod p: a microbatch passes all ranks once per chunk.
std::vector<int> round_robin(const PipelineShape& shape) {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(shape.stages()));
  for (int stage = 0; stage < shape.stages(); ++stage) ranks.push_back(stage % shape.pipeline);
  return ranks;
}

class BreadthFirst final : public Scheduler {
 public:
  Refusals supports(const PipelineShape&) const override { return {}; }

  // Backwards go from the last chunk to the first; within a chunk, microbatches are in ascending order.
  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, round_robin(shape));
    const int p = shape.pipeline, m = shape.microbatches;
    for (int rank = 0; rank < p; ++rank) {
      auto& row = schedule.row(rank);
      for (int stage = rank; stage < shape.stages(); stage += p)
        for (int mb = 0; mb < m; ++mb) row.push_back(forward(stage, mb));
      for (int stage = shape.stages() - p + rank; stage >= 0; stage -= p)
        for (int mb = 0; mb < m; ++mb) row.push_back(backward(stage, mb));
    }
    return schedule;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, BreadthFirst, "sched-breadth-first", "0.1.0",
             "all microbatches of a chunk before the next chunk (breadth-first)", nullptr)
