// SPDX-License-Identifier: Apache-2.0
// Computes the end times of rows pass by pass: each rank in turn, as far as its inputs are there.
#include "schedule/timing.hpp"

#include <algorithm>
#include <cstddef>

#include "schedule/dense_table.hpp"
#include "schedule/graph.hpp"

namespace triax::schedule {

namespace {

using Ends = std::vector<std::vector<std::int64_t>>;

constexpr int kPassKinds = static_cast<int>(Kind::backward_weight) + 1;
constexpr std::int64_t kNotEnded = -1;

int microbatches_of(const std::vector<std::vector<Action>>& rows) {
  int out = 0;
  for (const std::vector<Action>& row : rows)
    for (const Action& action : row) out = std::max(out, action.microbatch + 1);
  return out;
}

std::int64_t length_of(ComputeKind kind) {
  return kind == ComputeKind::backward ? 2 : 1;
}

class RowTiming {
 public:
  RowTiming(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map)
      : rows_(rows),
        stages_(stage_map.stages()),
        needs_(static_cast<std::size_t>(kPassKinds) * static_cast<std::size_t>(stages_)),
        ended_(kPassKinds, stages_, microbatches_of(rows), kNotEnded),
        ends_(rows.size()) {
    for (int kind = 0; kind < kPassKinds; ++kind)
      for (int stage = 0; stage < stages_; ++stage)
        for (const Need& need : rule(static_cast<Kind>(kind)).needs)
          if (need.condition.holds(stage_map.facts(stage)))
            needs_of(static_cast<Kind>(kind), stage).push_back(computing_of(need, stage));
    for (std::size_t rank = 0; rank < rows.size(); ++rank) ends_[rank].reserve(rows[rank].size());
  }

  /// False: some rank cannot complete its row.
  bool run() {
    for (const std::vector<Action>& row : rows_)
      for (const Action& action : row)
        if (action.stage < 0 || action.stage >= stages_ || action.microbatch < 0) return false;
    for (bool advances = true; advances;) {
      advances = false;
      for (std::size_t rank = 0; rank < rows_.size(); ++rank)
        while (add_next(rank)) advances = true;
    }
    return std::ranges::equal(rows_, ends_, {}, &std::vector<Action>::size, &std::vector<std::int64_t>::size);
  }

  Ends take() { return std::move(ends_); }

 private:
  std::vector<Computing>& needs_of(Kind kind, int stage) {
    return needs_[static_cast<std::size_t>(kind) * static_cast<std::size_t>(stages_) + static_cast<std::size_t>(stage)];
  }

  /// False: the rank has no pass left, or the next one waits.
  bool add_next(std::size_t rank) {
    std::vector<std::int64_t>& ends = ends_[rank];
    if (ends.size() == rows_[rank].size()) return false;
    const Action& action = rows_[rank][ends.size()];
    std::int64_t begin = ends.empty() ? 0 : ends.back();
    for (const Computing& need : needs_of(kind_of(action.kind), action.stage)) {
      const std::int64_t made = ended_.at(static_cast<int>(need.kind), need.stage, action.microbatch);
      if (made == kNotEnded) return false;
      begin = std::max(begin, made);
    }
    const std::int64_t end = begin + length_of(action.kind);
    ends.push_back(end);
    const bool whole = action.kind == ComputeKind::backward;
    for (const Kind kind :
         {whole ? Kind::backward_input : kind_of(action.kind), whole ? Kind::backward_weight : kind_of(action.kind)})
      ended_.at(static_cast<int>(kind), action.stage, action.microbatch) = end;
    return true;
  }

  const std::vector<std::vector<Action>>& rows_;
  const int stages_;
  std::vector<std::vector<Computing>> needs_; // by kind and stage
  Cells<std::int64_t> ended_;
  Ends ends_;
};

} // namespace

Ends end_times(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map) {
  RowTiming timing(rows, stage_map);
  if (!timing.run()) {
    const Graph graph(rows, stage_map); // throws with the pass that blocks a rank
    graph.times([](std::size_t, std::size_t) { return Graph::Lengths{}; });
  }
  return timing.take();
}

} // namespace triax::schedule
