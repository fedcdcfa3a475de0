// SPDX-License-Identifier: Apache-2.0
// Reference simulator for tests: runs the rows of a schedule tick by tick, in integers. It has its own definition of
// dependencies, and shares only the rows with the engine.
//
// Threads: one. Ownership: refers to the schedule. Blocking: never. Errors: a test failure if the rows deadlock.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "triax/scheduler.hpp"

namespace triax::test {

/// Times of a stage's passes in ticks, at least one each; a whole backward takes input + weight. Link: time between two
/// ranks.
struct Costs {
  int forward = 1, input = 1, weight = 1, link = 0;
  int pass() const { return forward + input + weight; }
};

struct Measured {
  int span = 0;                 // from the first start to the last end over all ranks
  int longest_row = 0;          // longest interval of a rank, from its first start to its last end
  std::vector<int> work{};      // by rank
  std::vector<int> in_flight{}; // by rank: most forwards whose weight gradient is still missing
};

/// An idle rank starts its next action in the first tick at which all its dependencies have ended.
class Clock {
 public:
  Clock(const Schedule& schedule, const PipelineShape& shape, Costs costs)
      : schedule_(schedule), shape_(shape), costs_(costs), ranks_(static_cast<std::size_t>(shape.pipeline)) {
    const auto cells = static_cast<std::size_t>(shape.stages() * shape.microbatches);
    forward_end_.assign(cells, kNever);
    input_end_.assign(cells, kNever);
  }

  Measured run() {
    std::size_t left = 0;
    for (int rank = 0; rank < schedule_.ranks(); ++rank) left += schedule_.row(rank).size();
    const int limit = static_cast<int>(left) * (costs_.pass() + costs_.link);
    for (int now = 0; left > 0 && now <= limit; ++now)
      for (int rank = 0; rank < schedule_.ranks(); ++rank) left -= start_next(rank, now) ? 1 : 0;
    EXPECT_EQ(left, 0u) << "the clock stands still";
    Measured out;
    for (const Rank& rank : ranks_) {
      out.span = std::max(out.span, rank.free_at);
      out.longest_row = std::max(out.longest_row, rank.free_at - rank.first_start);
      out.work.push_back(rank.work);
      out.in_flight.push_back(rank.peak);
    }
    return out;
  }

 private:
  static constexpr int kNever = 1 << 30;
  struct Rank {
    std::size_t next = 0;
    int free_at = 0, first_start = kNever, work = 0, now = 0, peak = 0;
  };

  int& end_of(std::vector<int>& ends, int stage, int microbatch) {
    return ends[static_cast<std::size_t>(stage * shape_.microbatches + microbatch)];
  }
  /// Time at which the output of stage `from` is on the rank of stage `to`.
  int arrives(std::vector<int>& ends, int from, int to, int microbatch) {
    const std::vector<int>& ranks = schedule_.stage_rank().at(0);
    const bool crosses = ranks[static_cast<std::size_t>(from)] != ranks[static_cast<std::size_t>(to)];
    return end_of(ends, from, microbatch) + (crosses ? costs_.link : 0);
  }
  int waits_until(const Action& action) {
    const int stage = action.stage, mb = action.microbatch, last = shape_.stages() - 1;
    if (action.kind == ComputeKind::forward) return stage == 0 ? 0 : arrives(forward_end_, stage - 1, stage, mb);
    if (action.kind == ComputeKind::backward_weight) return end_of(input_end_, stage, mb);
    const int own = end_of(forward_end_, stage, mb);
    return stage == last ? own : std::max(own, arrives(input_end_, stage + 1, stage, mb));
  }
  int cost_of(ComputeKind kind) const {
    if (kind == ComputeKind::forward) return costs_.forward;
    return (kind == ComputeKind::backward_weight ? 0 : costs_.input) +
           (kind == ComputeKind::backward_input ? 0 : costs_.weight);
  }

  bool start_next(int number, int now) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    const std::vector<Action>& row = schedule_.row(number);
    if (rank.next == row.size() || rank.free_at > now) return false;
    const Action& action = row[rank.next];
    if (waits_until(action) > now) return false;
    const int cost = cost_of(action.kind);
    rank.next += 1;
    rank.free_at = now + cost;
    rank.first_start = std::min(rank.first_start, now);
    rank.work += cost;
    count(rank, action.kind);
    if (action.kind == ComputeKind::forward) end_of(forward_end_, action.stage, action.microbatch) = rank.free_at;
    if (action.kind == ComputeKind::backward || action.kind == ComputeKind::backward_input)
      end_of(input_end_, action.stage, action.microbatch) = rank.free_at;
    return true;
  }
  static void count(Rank& rank, ComputeKind kind) {
    rank.now += kind == ComputeKind::forward;
    rank.now -= kind == ComputeKind::backward || kind == ComputeKind::backward_weight;
    rank.peak = std::max(rank.peak, rank.now);
  }

  const Schedule& schedule_;
  const PipelineShape& shape_;
  Costs costs_;
  std::vector<Rank> ranks_;
  std::vector<int> forward_end_, input_end_;
};

} // namespace triax::test
