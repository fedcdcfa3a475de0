// SPDX-License-Identifier: Apache-2.0
// With equal blocks, a limit of time or memory is a largest number of blocks for each stage, and a split within the
// limits exists if these numbers suffice together. So limits are found by bisection.
#include "cost/equal_block_split.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace triax::cost {

namespace {

/// The load of a stage in one unit: `fixed`, and `block` for each of its blocks.
struct LinearLoad {
  std::int64_t fixed = 0, block = 0;
  /// The largest number of blocks within a limit, at most `all`; -1: the limit is below `fixed`.
  std::int64_t blocks_within(std::int64_t limit, std::int64_t all) const {
    if (limit < fixed) return -1;
    return block == 0 ? all : std::min(all, (limit - fixed) / block);
  }
  std::int64_t of(std::int64_t blocks) const { return fixed + blocks * block; }
};

class EqualBlocks {
 public:
  explicit EqualBlocks(const SplitProblem& problem) : blocks_(static_cast<std::int64_t>(problem.blocks.size())) {
    const int last = problem.stages - 1;
    const StageLoad block = problem.blocks.empty() ? StageLoad{} : problem.blocks.front();
    for (int stage = 0; stage <= last; ++stage) {
      StageLoad ends;
      if (stage == 0) ends += problem.before;
      if (stage == last) ends += problem.after;
      const bool has_ends = (stage == 0 && problem.has_before) || (stage == last && problem.has_after);
      const std::int64_t in_flight = problem.stages - stage;
      stages_.push_back(
          {{ends.time, block.time},
           {ends.state_bytes + in_flight * ends.flight_bytes, block.state_bytes + in_flight * block.flight_bytes},
           has_ends ? 0 : 1,
           blocks_});
    }
  }

  std::vector<std::int64_t> split() {
    for (LinearLoad Stage::*const load : {&Stage::time, &Stage::bytes}) {
      const std::int64_t limit = least_limit(load);
      for (Stage& stage : stages_) stage.most = most_within(stage, load, limit);
    }
    return least_squares();
  }

 private:
  struct Stage {
    LinearLoad time, bytes;
    std::int64_t least = 0, most = 0; // blocks
  };

  static std::int64_t most_within(const Stage& stage, LinearLoad Stage::*load, std::int64_t limit) {
    return (stage.*load).blocks_within(limit, stage.most);
  }
  bool is_possible(LinearLoad Stage::*load, std::int64_t limit) const {
    std::int64_t sum = 0;
    for (const Stage& stage : stages_) {
      const std::int64_t most = most_within(stage, load, limit);
      if (most < stage.least) return false;
      sum += most;
    }
    return sum >= blocks_;
  }
  /// The least limit under which there is a split, with at most Stage::most blocks in each stage.
  std::int64_t least_limit(LinearLoad Stage::*load) const {
    std::int64_t low = 0, high = 0; // `high` is possible
    for (const Stage& stage : stages_) {
      low = std::max(low, (stage.*load).of(stage.least));
      high = std::max(high, (stage.*load).of(stage.most));
    }
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (is_possible(load, middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }

  /// The squares of the stages' times are convex in their blocks, so each block goes to the stage whose square it
  /// raises least; of equal ones to the first.
  std::vector<std::int64_t> least_squares() const {
    std::vector<std::int64_t> out;
    std::int64_t left = blocks_;
    using Next = std::pair<std::int64_t, std::size_t>; // what one more block adds, and the stage
    std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
    const auto offer = [&](std::size_t at) {
      if (out[at] == stages_[at].most) return;
      const std::int64_t now = stages_[at].time.of(out[at]), then = stages_[at].time.of(out[at] + 1);
      queue.emplace(then * then - now * now, at);
    };
    for (const Stage& stage : stages_) {
      out.push_back(stage.least);
      left -= stage.least;
      offer(out.size() - 1);
    }
    for (; left > 0; --left) {
      const std::size_t at = queue.top().second;
      queue.pop();
      ++out[at];
      offer(at);
    }
    return out;
  }

  const std::int64_t blocks_;
  std::vector<Stage> stages_;
};

} // namespace

bool has_equal_blocks(const SplitProblem& problem) {
  return std::ranges::adjacent_find(problem.blocks, std::ranges::not_equal_to()) == problem.blocks.end();
}

std::vector<std::int64_t> equal_block_split(const SplitProblem& problem) {
  return EqualBlocks(problem).split();
}

} // namespace triax::cost
