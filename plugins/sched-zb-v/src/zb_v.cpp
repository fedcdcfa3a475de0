// SPDX-License-Identifier: Apache-2.0
// sched-zb-v: two chunks per rank in a V, and weight gradients in the bubble (Qi et al., "Zero bubble pipeline
// parallelism", ICLR'24, section 6).
// No bubble if F, I and W take equal times and m >= 2p-1. In flight on every rank: min(2m, 2p) microbatches over its
// two chunks, each with half of the rank's layers. That is the memory of 1F1B's first rank, on all ranks.
#include <algorithm>
#include <array>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>

namespace {
using namespace triax;

/// The first chunks go down the ranks and the second chunks up again: rank 0 has the first stage and the last.
std::vector<int> in_a_v(int ranks) {
  std::vector<int> out;
  out.reserve(2 * static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) out.push_back(rank);
  for (int rank = ranks - 1; rank >= 0; --rank) out.push_back(rank);
  return out;
}

enum Chunk { down, up };

/// A row under construction: the number of actions of each kind and chunk so far, which is the next microbatch.
class Row {
 public:
  Row(std::vector<Action>& row, const PipelineShape& shape, int rank)
      : row_(row), microbatches_(shape.microbatches), stage_{rank, shape.stages() - 1 - rank} {}

  void forward(Chunk chunk) { add(triax::forward(stage_[chunk], forwards_[chunk]++)); }
  void input(Chunk chunk) { add(backward_input(stage_[chunk], inputs_[chunk]++)); }
  void weight(Chunk chunk) { add(backward_weight(stage_[chunk], weights_[chunk]++)); }
  void backward(Chunk chunk) {
    input(chunk);
    weight(chunk);
  }
  int forwards(Chunk chunk) const { return forwards_[chunk]; }
  int held_back(Chunk chunk) const { return inputs_[chunk] - weights_[chunk]; }

 private:
  void add(const Action& action) {
    if (action.microbatch < microbatches_) row_.push_back(action);
  }

  std::vector<Action>& row_;
  int microbatches_;
  std::array<int, 2> stage_, forwards_{}, inputs_{}, weights_{};
};

class ZeroBubbleV final : public Scheduler {
 public:
  Refusals supports(const PipelineShape& shape) const override {
    if (shape.chunks != 2)
      return make_refusal(ErrorCode::kUnsupported, {"parallel.chunks"},
                          "parallel.chunks = {}: sched-zb-v gives each pipeline rank two chunks", shape.chunks)
          .with_hint("use parallel.chunks 2{}", shape.chunks == 1 ? ", or sched-zb-h1" : "");
    return {};
  }

  Schedule rows(const PipelineShape& shape) const override {
    Schedule schedule(shape, in_a_v(shape.pipeline));
    for (int rank = 0; rank < shape.pipeline; ++rank) fill(Row(schedule.row(rank), shape, rank), shape, rank);
    return schedule;
  }

 private:
  /// A step of fewer than 2p-1 microbatches is built as one of 2p-1; actions of missing microbatches are left out.
  static void fill(Row row, const PipelineShape& shape, int rank) {
    const int behind = shape.pipeline - rank, all = std::max(shape.microbatches, 2 * shape.pipeline - 1);
    // Warm-up, 2p-1 forwards on every rank: the first microbatch goes down and up the ranks, and others follow it.
    for (int i = 0; i < 2 * behind - 1; ++i) row.forward(down);
    for (int i = 0; i < rank; ++i) {
      row.forward(up);
      row.forward(down);
    }
    // The first gradients come from the last stage, on rank 0, and go down the ranks.
    for (int i = 0; i < behind; ++i) {
      row.forward(up);
      row.backward(up);
    }
    // Steady state: each forward with the oldest backward of its chunk.
    while (row.forwards(up) < all) {
      if (row.forwards(down) < all) row.forward(down);
      row.backward(down);
      row.forward(up);
      row.backward(up);
    }
    // Cool-down: input gradients first, because other ranks wait for them; weight gradients fill the remaining time.
    for (int i = 0; i < rank; ++i) {
      row.input(down);
      row.input(up);
    }
    for (int i = 0; i < behind; ++i) row.backward(down);
    for (const Chunk chunk : {up, down})
      while (row.held_back(chunk) > 0) row.weight(chunk);
  }
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, ZeroBubbleV, "sched-zb-v", "0.1.0",
             "two chunks in a V, no bubble where F, I and W take equal times, at 1F1B's memory (ZB-V)", nullptr)
