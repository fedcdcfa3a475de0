// SPDX-License-Identifier: Apache-2.0
#include "cost/balanced_split.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "cost/equal_block_split.hpp"

namespace triax::cost {

namespace {

constexpr std::int64_t kImpossible = std::numeric_limits<std::int64_t>::max();

/// Stages as ranges of blocks, with the loads of ranges from prefix sums.
class Partition {
 public:
  explicit Partition(const SplitProblem& problem) : problem_(problem), sums_(1) {
    for (const StageLoad& block : problem.blocks) {
      sums_.push_back(sums_.back());
      sums_.back() += block;
    }
  }

  int stages() const { return problem_.stages; }
  int blocks() const { return static_cast<int>(problem_.blocks.size()); }
  int least_blocks(int stage) const {
    return (stage == 0 && problem_.has_before) || (stage + 1 == stages() && problem_.has_after) ? 0 : 1;
  }
  std::int64_t time(int stage, int begin, int end) const {
    std::int64_t out = of(end).time - of(begin).time;
    if (stage == 0) out += problem_.before.time;
    if (stage + 1 == stages()) out += problem_.after.time;
    return out;
  }
  std::int64_t bytes(int stage, int begin, int end) const {
    StageLoad load = {0, of(end).state_bytes - of(begin).state_bytes, of(end).flight_bytes - of(begin).flight_bytes};
    if (stage == 0) load += problem_.before;
    if (stage + 1 == stages()) load += problem_.after;
    return load.state_bytes + (stages() - stage) * load.flight_bytes;
  }

 private:
  const StageLoad& of(int block) const { return sums_[static_cast<std::size_t>(block)]; }

  const SplitProblem& problem_;
  std::vector<StageLoad> sums_; // sums over the blocks before each block
};

/// One dynamic program: the least value of the stages up to each boundary.
class BoundarySearch {
 public:
  /// `limit`: of the time of a stage.
  BoundarySearch(const Partition& partition, std::int64_t limit) : partition_(partition), limit_(limit) {
    const auto stages = static_cast<std::size_t>(partition.stages());
    first_end_.assign(stages, partition.blocks());
    last_end_.assign(stages, partition.blocks());
    for (int stage = 0, end = 0; stage + 1 < partition.stages(); ++stage) {
      while (end < partition.blocks() && is_within(stage, stage == 0 ? 0 : last_end(stage - 1), end + 1)) ++end;
      last_end_[static_cast<std::size_t>(stage)] = end;
    }
    for (int stage = partition.stages() - 1, begin = partition.blocks(); stage > 0; --stage) {
      while (begin > 0 && is_within(stage, begin - 1, first_end(stage))) --begin;
      first_end_[static_cast<std::size_t>(stage) - 1] = begin;
    }
  }

  /// `cost(stage, begin, end)`: kImpossible if it is not allowed. Returns kImpossible if no split is allowed.
  template <class Cost, class Combine>
  std::int64_t run(const Cost& cost, const Combine& combine) {
    columns_ = static_cast<std::size_t>(partition_.blocks()) + 1;
    best_.assign(columns_, kImpossible);
    best_[0] = 0;
    begins_.assign(static_cast<std::size_t>(partition_.stages()) * columns_, -1);
    for (int stage = 0; stage < partition_.stages(); ++stage) add_stage(stage, cost, combine);
    return best_.back();
  }

  /// After a run() that found a split: blocks of each stage.
  std::vector<std::int64_t> split() const {
    std::vector<std::int64_t> out(first_end_.size());
    int end = partition_.blocks();
    for (std::size_t stage = out.size(); stage-- > 0;) {
      const int begin = begins_[stage * columns_ + static_cast<std::size_t>(end)];
      out[stage] = end - begin;
      end = begin;
    }
    return out;
  }

 private:
  /// Boundaries after a stage, at the least and at the most, between which the stages before and after it can have
  /// times within the limit.
  /// @{
  int first_end(int stage) const { return first_end_[static_cast<std::size_t>(stage)]; }
  int last_end(int stage) const { return last_end_[static_cast<std::size_t>(stage)]; }
  /// @}
  bool is_within(int stage, int begin, int end) const { return partition_.time(stage, begin, end) <= limit_; }

  /// Among equal values, the last stages get the fewest blocks, as in an even split.
  template <class Cost, class Combine>
  void add_stage(int stage, const Cost& cost, const Combine& combine) {
    next_.assign(columns_, kImpossible);
    const int first_begin = stage == 0 ? 0 : first_end(stage - 1), last_begin = stage == 0 ? 0 : last_end(stage - 1);
    for (int end = first_end(stage); end <= last_end(stage); ++end) {
      for (int begin = std::min(end - partition_.least_blocks(stage), last_begin); begin >= first_begin; --begin) {
        if (!is_within(stage, begin, end)) break; // more blocks take no less
        const std::int64_t before = best_[static_cast<std::size_t>(begin)];
        const std::int64_t own = before == kImpossible ? kImpossible : cost(stage, begin, end);
        if (own == kImpossible) continue;
        const std::int64_t value = combine(before, own);
        if (value >= next_[static_cast<std::size_t>(end)]) continue;
        next_[static_cast<std::size_t>(end)] = value;
        begins_[static_cast<std::size_t>(stage) * columns_ + static_cast<std::size_t>(end)] = begin;
      }
    }
    std::swap(best_, next_);
  }

  const Partition& partition_;
  const std::int64_t limit_;
  std::size_t columns_ = 0;
  std::vector<int> first_end_, last_end_; // by stage
  std::vector<std::int64_t> best_, next_; // by end
  std::vector<int> begins_;               // by stage and end
};

} // namespace

std::vector<std::int64_t> even_split(const SplitProblem& problem) {
  const auto blocks = static_cast<std::int64_t>(problem.blocks.size());
  std::vector<std::int64_t> out(static_cast<std::size_t>(problem.stages), blocks / problem.stages);
  for (std::int64_t stage = 0; stage < blocks % problem.stages; ++stage) ++out[static_cast<std::size_t>(stage)];
  return out;
}

/// Each criterion has its own dynamic program, because a maximum says nothing of the stages below it: a split that is
/// best in all criteria may begin with stages that are not.
std::vector<std::int64_t> programmed_split(const SplitProblem& problem) {
  const Partition partition(problem);
  const auto time = [&partition](int stage, int begin, int end) { return partition.time(stage, begin, end); };
  BoundarySearch by_time(partition, quality_of(problem, even_split(problem)).time);
  const auto larger = [](std::int64_t one, std::int64_t other) { return std::max(one, other); };
  const std::int64_t slowest = by_time.run(time, larger);

  const auto bytes = [&partition](int stage, int begin, int end) { return partition.bytes(stage, begin, end); };
  BoundarySearch rest(partition, slowest);
  const std::int64_t most = rest.run(bytes, larger);
  rest.run(
      [&](int stage, int begin, int end) {
        if (bytes(stage, begin, end) > most) return kImpossible;
        const std::int64_t of_stage = time(stage, begin, end);
        return of_stage * of_stage;
      },
      std::plus<>());
  return rest.split();
}

std::vector<std::int64_t> balanced_split(const SplitProblem& problem) {
  return has_equal_blocks(problem) ? equal_block_split(problem) : programmed_split(problem);
}

std::vector<std::int64_t> stage_times(const SplitProblem& problem, const std::vector<std::int64_t>& split) {
  const Partition partition(problem);
  std::vector<std::int64_t> out;
  int begin = 0;
  for (int stage = 0; stage < problem.stages; ++stage) {
    const int end = begin + static_cast<int>(split[static_cast<std::size_t>(stage)]);
    out.push_back(partition.time(stage, begin, end));
    begin = end;
  }
  return out;
}

SplitQuality quality_of(const SplitProblem& problem, const std::vector<std::int64_t>& split) {
  const Partition partition(problem);
  SplitQuality out;
  int begin = 0;
  for (int stage = 0; stage < problem.stages; ++stage) {
    const int end = begin + static_cast<int>(split[static_cast<std::size_t>(stage)]);
    const std::int64_t time = partition.time(stage, begin, end);
    out.time = std::max(out.time, time);
    out.bytes = std::max(out.bytes, partition.bytes(stage, begin, end));
    out.squares += time * time;
    begin = end;
  }
  return out;
}

double excess_of(const SplitProblem& problem, const std::vector<std::int64_t>& split) {
  const std::vector<std::int64_t> times = stage_times(problem, split);
  const auto all = static_cast<double>(std::accumulate(times.begin(), times.end(), std::int64_t{0}));
  return all > 0 ? static_cast<double>(*std::ranges::max_element(times)) * problem.stages / all - 1 : 0;
}

} // namespace triax::cost
