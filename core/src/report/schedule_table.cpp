#include "report/schedule_table.hpp"

#include <algorithm>

#include "triax/text.hpp"

namespace triax::report {

namespace {

using Row = std::vector<Action>;
using Ends = std::vector<std::int64_t>;

constexpr std::int64_t kRulerSlots = 5; // between two numbers above the drawing

/// The unit of the ends: a whole backward is its two halves.
std::int64_t slots_of(const Action& action) {
  return action.kind == ComputeKind::backward ? 2 : 1;
}

bool stage_is_rank(const Schedule& schedule) {
  const std::vector<std::vector<int>>& maps = schedule.stage_rank();
  if (maps.size() != 1) return false;
  for (std::size_t stage = 0; stage < maps[0].size(); ++stage)
    if (maps[0][stage] != static_cast<int>(stage)) return false;
  return true;
}

class Drawing {
 public:
  explicit Drawing(const Schedule& schedule) : with_stage_(!stage_is_rank(schedule)) {
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
      label_width_ = std::max(label_width_, label(rank).size());
      for (const Action& action : schedule.row(rank)) slot_width_ = std::max(slot_width_, box(action).size() + 1);
    }
  }

  std::string ruler(std::int64_t slots) const {
    std::string out = "slot";
    for (std::int64_t slot = 0; slot < slots; slot += kRulerSlots) {
      out.resize(column(slot), ' ');
      out += std::to_string(slot);
    }
    return out + '\n';
  }

  /// A box begins behind the bar of the one before it, or behind one of its own.
  std::string row(int rank, const Row& actions, const Ends& ends) const {
    std::string out = label(rank);
    for (std::size_t at = 0; at < actions.size(); ++at) {
      out.resize(column(ends[at] - slots_of(actions[at])), ' ');
      out.back() = '|';
      out += box(actions[at]);
      out.resize(column(ends[at]) - 1, ' ');
      out += '|';
    }
    return out + '\n';
  }

 private:
  static std::string label(int rank) { return text("rank {} ", rank); }
  std::string box(const Action& action) const {
    const std::string whole = to_text(action);
    return with_stage_ ? whole : whole.substr(whole.find_first_not_of("0123456789"));
  }
  /// Of the first character of a box that starts at the slot.
  std::size_t column(std::int64_t slot) const {
    return label_width_ + 1 + static_cast<std::size_t>(slot) * slot_width_;
  }

  bool with_stage_;
  std::size_t slot_width_ = 0, label_width_ = 0;
};

std::int64_t busy_slots(const Row& row) {
  std::int64_t busy = 0;
  for (const Action& action : row) busy += slots_of(action);
  return busy;
}

/// From a forward to the end of its backward.
int peak_in_flight(const Row& row) {
  int now = 0, peak = 0;
  for (const Action& action : row) {
    now += action.kind == ComputeKind::forward;
    now -= action.kind == ComputeKind::backward || action.kind == ComputeKind::backward_weight;
    peak = std::max(peak, now);
  }
  return peak;
}

} // namespace

std::string schedule_table(const Schedule& schedule, const std::vector<std::vector<std::int64_t>>& ends) {
  std::int64_t slots = 0;
  for (const Ends& row : ends) slots = row.empty() ? slots : std::max(slots, row.back());
  const Drawing drawing(schedule);
  std::string out = drawing.ruler(slots), idle, in_flight;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const Row& row = schedule.row(rank);
    out += drawing.row(rank, row, ends.at(static_cast<std::size_t>(rank)));
    idle += text(" {}", slots - busy_slots(row));
    in_flight += text(" {}", peak_in_flight(row));
  }
  const bool chunks = schedule.stage_rank().at(0).size() > ends.size();
  out += text("idle slots of {}, by rank:{}\n", slots, idle);
  return out + text("peak of {} in flight, by rank:{}\n", chunks ? "microbatch chunks" : "microbatches", in_flight);
}

} // namespace triax::report
