// Goes up and down the ranks; each goes on as far as what it needs has an end.
#include "schedule/timing.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

class Timing {
 public:
  Timing(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map)
      : rows_(rows), stage_map_(stage_map), ends_(rows.size()) {}

  std::vector<std::vector<std::int64_t>> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t turn = 0; turn < 2 * rows_.size(); ++turn) { // up with the forwards, down with the backwards
        const std::size_t rank = turn < rows_.size() ? turn : 2 * rows_.size() - 1 - turn;
        while (ends_[rank].size() < rows_[rank].size() && step(rank)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < rows_.size(); ++rank)
      TRIAX_REQUIRE(ends_[rank].size() == rows_[rank].size(), "rank {} never gets past position {}", rank,
                    ends_[rank].size());
    return std::move(ends_);
  }

 private:
  using Key = std::tuple<Kind, int, int>;

  /// Times the rank's next action if all it needs is timed.
  bool step(std::size_t rank) {
    const Action& action = rows_[rank][ends_[rank].size()];
    const Kind kind = kind_of(action.kind);
    std::int64_t start = ends_[rank].empty() ? 0 : ends_[rank].back();
    for (const Need& need : rule(kind).needs) {
      if (!stage_map_.holds(need.condition, action.stage)) continue;
      const std::optional<std::int64_t> end = end_of(need, action);
      if (!end) return false;
      start = std::max(start, *end);
    }
    const std::int64_t end = start + (kind == Kind::backward ? 2 : 1);
    ends_[rank].push_back(end);
    if (kind == Kind::backward) {
      ended_[{Kind::backward_input, action.stage, action.microbatch}] = end;
      ended_[{Kind::backward_weight, action.stage, action.microbatch}] = end;
    } else {
      ended_[{kind, action.stage, action.microbatch}] = end;
    }
    return true;
  }

  /// Of the computing that a need leads to: transfers take no time.
  std::optional<std::int64_t> end_of(const Need& need, const Action& action) const {
    const Computing needed = computing_of(need, action.stage);
    const auto found = ended_.find({needed.kind, needed.stage, action.microbatch});
    return found == ended_.end() ? std::nullopt : std::optional(found->second);
  }

  const std::vector<std::vector<Action>>& rows_;
  const StageMap& stage_map_;
  std::vector<std::vector<std::int64_t>> ends_;
  std::map<Key, std::int64_t> ended_;
};

} // namespace

std::vector<std::vector<std::int64_t>> end_times(const std::vector<std::vector<Action>>& rows,
                                                 const StageMap& stage_map) {
  return Timing(rows, stage_map).run();
}

std::vector<std::vector<std::int64_t>> end_times(const Schedule& schedule) {
  std::vector<std::vector<Action>> rows;
  rows.reserve(static_cast<std::size_t>(schedule.ranks()));
  for (int rank = 0; rank < schedule.ranks(); ++rank) rows.push_back(schedule.row(rank));
  return end_times(rows, StageMap(schedule.stage_rank().at(0)));
}

} // namespace triax::schedule
