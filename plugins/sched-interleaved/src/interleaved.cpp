// sched-interleaved: one forward, one backward over several model chunks per rank (Narayanan et al., SC'21, section
// 2.2.2; the order is Megatron-LM's).
// Bubble over ideal (p-1)/(v*m), a v-th of 1F1B's, at v times the transfers; in flight on rank i:
// min(m*v, 2(p-1-i) + (v-1)p + 1) chunks.
#include <algorithm>
#include <cstdint>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

/// Stage s on rank s mod p: a microbatch goes round the ranks once for each chunk.
std::vector<int> round_robin(const PipelineShape& shape) {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(shape.stages()));
  for (int stage = 0; stage < shape.stages(); ++stage) ranks.push_back(stage % shape.pipeline);
  return ranks;
}

/// Passes of one rank by their running number: p microbatches go through its first chunk, then the same ones through
/// its next; after the last chunk come the next p microbatches. Backwards take the chunks from the last to the first.
class Passes {
 public:
  Passes(const PipelineShape& shape, int rank) : shape_(shape), rank_(rank) {}

  std::int64_t count() const { return std::int64_t{shape_.microbatches} * shape_.chunks; }
  Action forward(std::int64_t number) const { return triax::forward(stage(chunk(number)), microbatch(number)); }
  Action backward(std::int64_t number) const {
    return triax::backward(stage(shape_.chunks - 1 - chunk(number)), microbatch(number));
  }

 private:
  int stage(int chunk) const { return chunk * shape_.pipeline + rank_; }
  int chunk(std::int64_t number) const { return static_cast<int>(number % shape_.stages() / shape_.pipeline); }
  int microbatch(std::int64_t number) const {
    return static_cast<int>(number / shape_.stages() * shape_.pipeline + number % shape_.pipeline);
  }

  const PipelineShape& shape_;
  int rank_;
};

class Interleaved final : public Scheduler {
 public:
  Support supports(const PipelineShape& shape) const override {
    if (shape.chunks < 2)
      return Support::no("parallel.chunks = {}: sched-interleaved needs two or more chunks on each pipeline rank",
                         shape.chunks)
          .hint("use parallel.chunks 2, or sched-1f1b");
    const int p = shape.pipeline, m = shape.microbatches, below = m / p * p;
    if (m == below) return Support::yes();
    return Support::no("sched-interleaved refuses m = {} with p = {}: m must be a multiple of p", m, p)
        .hint(
            "m = batch.global / (parallel.data x batch.micro); make it {}{}, or use sched-1f1b with parallel.chunks 1",
            below == 0 ? "" : text("{} or ", below), below + p);
  }

  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, round_robin(shape));
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      auto& row = schedule.row(rank);
      const Passes passes(shape, rank);
      // Warm-up: the first group through all chunks but the last, and two more for each rank behind this one, so that
      // the first backward finds its gradient there.
      const std::int64_t behind = shape.pipeline - 1 - rank;
      const std::int64_t warmup =
          std::min(passes.count(), 2 * behind + std::int64_t{shape.chunks - 1} * shape.pipeline);
      for (std::int64_t pass = 0; pass < warmup; ++pass) row.push_back(passes.forward(pass));
      // Steady state: each forward is paid for with the oldest backward.
      for (std::int64_t pass = warmup; pass < passes.count(); ++pass) {
        row.push_back(passes.forward(pass));
        row.push_back(passes.backward(pass - warmup));
      }
      // Cool-down: the backwards of what the warm-up left in flight.
      for (std::int64_t pass = passes.count() - warmup; pass < passes.count(); ++pass)
        row.push_back(passes.backward(pass));
    }
    return schedule;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, Interleaved, "sched-interleaved", "0.1.0",
             "one forward, one backward over several chunks per rank (Megatron-LM)", nullptr)
