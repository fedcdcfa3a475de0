// SPDX-License-Identifier: Apache-2.0
// Derives the stage map and the numbers of stages and microbatches from the cells of a CSV file.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "csv/csv_actions.hpp"
#include "triax/text.hpp"

namespace triax::csv {

namespace {

class Placing {
 public:
  Placing(const Rows& rows, Problems& problems) : rows_(rows), problems_(problems) {}

  Placement run() {
    if (rows_.empty()) {
      problems_.add("has no action", "a schedule has a line per pipeline rank: 0F0,0B0");
      return {};
    }
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) note_row(static_cast<int>(rank));
    if (!problems_.empty()) return {};
    check_gaps("stage", stages_);
    check_gaps("microbatch", microbatches_);
    if (problems_.empty()) check_even();
    return problems_.empty() ? made() : Placement{};
  }

 private:
  using First = std::map<int, Cell>; // the first cell with each number

  void note_row(int rank) {
    bool any = false;
    for (const CellAction& action : rows_[static_cast<std::size_t>(rank)]) {
      if (action.microbatch >= 0) microbatches_.try_emplace(action.microbatch, action.cell);
      if (action.stage < 0) continue;
      any = true;
      const Cell& first = stages_.try_emplace(action.stage, action.cell).first->second;
      if (first.at.line != action.cell.at.line && reported_.insert({action.stage, rank}).second)
        problems_.add(action.cell,
                      text("puts stage {} on rank {}, but {} in line {}, cell {} puts it on rank {}", action.stage,
                           rank, first.text, first.at.line, first.at.cell, first.at.line - 1),
                      "each line is a rank, and all actions of a stage are on one rank");
    }
    if (!any)
      problems_.add(rank + 1, "has no stage: each line is a pipeline rank, which has one or more stages",
                    "remove the empty line, or add the actions of the rank");
  }

  void check_gaps(const char* what, const First& named) {
    if (named.empty())
      return problems_.add(text("has no {}", what), "an action is a stage, a kind and a microbatch: 3F1");
    int next = 0;
    for (const auto& [number, cell] : named) {
      if (number != next)
        return problems_.add(cell, text("has {} {}, but no cell has {} {}", what, number, what, next),
                             text("number them from 0 without gaps"));
      ++next;
    }
  }

  void check_even() {
    std::vector<int> of_rank(rows_.size());
    for (const auto& [stage, cell] : stages_) ++of_rank[static_cast<std::size_t>(cell.at.line - 1)];
    for (std::size_t rank = 1; rank < of_rank.size(); ++rank)
      if (of_rank[rank] != of_rank[0])
        return problems_.add(
            static_cast<int>(rank) + 1,
            text("has {} stages, but line 1 has {}: all ranks must have the same number", of_rank[rank], of_rank[0]),
            "the number is parallel.chunks");
  }

  Placement made() const {
    Placement out;
    for (const auto& [stage, cell] : stages_) out.stage_rank.push_back(cell.at.line - 1);
    out.shape.pipeline = static_cast<int>(rows_.size());
    out.shape.chunks = static_cast<int>(stages_.size()) / out.shape.pipeline;
    out.shape.microbatches = static_cast<int>(microbatches_.size());
    return out;
  }

  const Rows& rows_;
  Problems& problems_;
  First stages_, microbatches_;
  std::set<std::pair<int, int>> reported_; // stages on a second rank that were reported
};

} // namespace

Placement make_placement(const Rows& rows, Problems& problems) {
  return Placing(rows, problems).run();
}

} // namespace triax::csv
