// SPDX-License-Identifier: Apache-2.0
// sched-interleaved: one forward, one backward over several model chunks per rank (Narayanan et al., SC'21, section
// 2.2.2; the order is Megatron-LM's).
// Bubble / work: (p-1)/(v*m), 1/v of 1F1B's. A microbatch crosses p*v-1 stage boundaries instead of p-1. In flight on
// rank i: min(m*v, 2(p-1-i) + (v-1)g + 1) microbatch chunks, with groups of g microbatches; the default is g = p.
#include <algorithm>
#include <cstdint>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_int("group", "0", 0, 16777216,
               "microbatches that go through one chunk before the next chunk, at least p; 0: p"),
};

/// Stage s on rank s mod p: a microbatch passes all ranks once per chunk.
std::vector<int> round_robin(const PipelineShape& shape) {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(shape.stages()));
  for (int stage = 0; stage < shape.stages(); ++stage) ranks.push_back(stage % shape.pipeline);
  return ranks;
}

/// Numbers the passes of one rank. A group of microbatches goes through the rank's first chunk, then through its
/// second, and so on; the next group follows after the last chunk. Backwards go from the last chunk to the first.
class Passes {
 public:
  Passes(const PipelineShape& shape, int rank, int group) : shape_(shape), rank_(rank), group_(group) {}

  std::int64_t count() const { return std::int64_t{shape_.microbatches} * shape_.chunks; }
  Action forward(std::int64_t number) const { return triax::forward(stage(chunk(number)), microbatch(number)); }
  Action backward(std::int64_t number) const {
    return triax::backward(stage(shape_.chunks - 1 - chunk(number)), microbatch(number));
  }

 private:
  int stage(int chunk) const { return chunk * shape_.pipeline + rank_; }
  /// First microbatch of the group of pass `number`.
  std::int64_t first(std::int64_t number) const { return number / whole() * group_; }
  /// Microbatches in the group of pass `number`; the last group may be smaller.
  std::int64_t size(std::int64_t number) const {
    return std::min<std::int64_t>(group_, shape_.microbatches - first(number));
  }
  std::int64_t whole() const { return std::int64_t{group_} * shape_.chunks; } // passes of a full group
  int chunk(std::int64_t number) const { return static_cast<int>(number % whole() / size(number)); }
  int microbatch(std::int64_t number) const {
    return static_cast<int>(first(number) + number % whole() % size(number));
  }

  const PipelineShape& shape_;
  int rank_, group_;
};

class Interleaved final : public Scheduler {
 public:
  explicit Interleaved(const PluginContext& context) : group_(static_cast<int>(context.options.integer("group"))) {}

  Refusals supports(const PipelineShape& shape) const override {
    Refusals out = group_ == 0 ? supports_groups_of_p(shape) : supports_group(shape);
    if (shape.chunks < 2)
      out.add(make_refusal(ErrorCode::kUnsupported, {"parallel.chunks"},
                           "parallel.chunks = {}: sched-interleaved needs two or more chunks on each pipeline rank",
                           shape.chunks)
                  .with_hint("use parallel.chunks 2, or sched-1f1b"));
    return out;
  }

  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, round_robin(shape));
    const int group = group_ == 0 ? shape.pipeline : group_;
    for (int rank = 0; rank < shape.pipeline; ++rank) {
      auto& row = schedule.row(rank);
      const Passes passes(shape, rank, group);
      // Warm-up: the first group through all chunks but the last, and two more forwards for each rank after this one,
      // so that the gradient for the first backward has arrived.
      const std::int64_t behind = shape.pipeline - 1 - rank;
      const std::int64_t warmup = std::min(passes.count(), 2 * behind + std::int64_t{shape.chunks - 1} * group);
      for (std::int64_t pass = 0; pass < warmup; ++pass) row.push_back(passes.forward(pass));
      // Steady state: a forward, then the oldest backward.
      for (std::int64_t pass = warmup; pass < passes.count(); ++pass) {
        row.push_back(passes.forward(pass));
        row.push_back(passes.backward(pass - warmup));
      }
      // Cool-down: the backwards of the microbatches that the warm-up left in flight.
      for (std::int64_t pass = passes.count() - warmup; pass < passes.count(); ++pass)
        row.push_back(passes.backward(pass));
    }
    return schedule;
  }

 private:
  static Refusals supports_groups_of_p(const PipelineShape& shape) {
    const int p = shape.pipeline, m = shape.microbatches, below = m / p * p;
    if (m == below) return {};
    // One group of all m microbatches always fits; a smaller group may leave fewer than p to the last one.
    const std::string groups = m < p ? std::string() : text("schedule.group {}, or ", m);
    return make_refusal(ErrorCode::kNotDivisible, {"batch.global", "batch.micro", "parallel.data", "parallel.pipeline"},
                        "m = {} microbatches are not divisible by p = {} pipeline ranks, as sched-interleaved requires",
                        m, p)
        .with_hint(
            "set batch.global / (parallel.data x batch.micro) to {}{}, or use {}sched-1f1b with parallel.chunks 1",
            below == 0 ? "" : text("{} or ", below), below + p, groups);
  }

  /// A microbatch returns for its next chunk after p passes, so a group needs at least p microbatches.
  Refusals supports_group(const PipelineShape& shape) const {
    const int p = shape.pipeline, m = shape.microbatches;
    if (m < p) return supports_groups_of_p(shape);
    if (group_ < p || group_ > m)
      return make_refusal(
                 ErrorCode::kOutOfRange, {"schedule.group", "parallel.pipeline"},
                 "schedule.group must be in [{}, {}], got {}: from p = {} pipeline ranks to m = {} microbatches", p, m,
                 group_, p, m)
          .with_hint("use schedule.group {}", group_ < p ? p : m);
    if (m % group_ == 0 || m % group_ >= p) return {};
    return make_refusal(
               ErrorCode::kUnsupported, {"schedule.group"},
               "schedule.group = {} leaves {} of m = {} microbatches to the last group, which needs at least p = {}",
               group_, m % group_, m, p)
        .with_hint("use schedule.group {}, or a group after which 0 or at least {} microbatches are left", m, p);
  }

  int group_;
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, Interleaved, "sched-interleaved", "0.1.0",
             "one forward, one backward over several chunks per rank (Megatron-LM)", kOptions)
