// SPDX-License-Identifier: Apache-2.0
// Schedules that differ by one change (flip) from a valid one.
//
// Threads: pure functions. Ownership: values. Blocking: loading schedulers reads files. For programs of triax_add_test
// with the schedulers' targets under DEPENDS.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "support/loaded_scheduler.hpp"
#include "triax/scheduler.hpp"

namespace triax::test {

struct NamedSchedule {
  std::string name;
  Schedule schedule;
};

/// The rows of every scheduler that supports the shape; equal rows are included once.
inline std::vector<NamedSchedule> valid_schedules(const PipelineShape& shape) {
  std::vector<NamedSchedule> out;
  for (const char* name : {"sched-1f1b", "sched-breadth-first", "sched-gpipe", "sched-interleaved", "sched-zb-h1",
                           "sched-zb-h2", "sched-zb-v"}) {
    const LoadedScheduler scheduler(name);
    if (!scheduler->supports(shape).empty()) continue;
    Schedule schedule = scheduler->rows(shape);
    const bool known = std::ranges::any_of(out, [&](const NamedSchedule& other) {
      return row_texts(other.schedule) == row_texts(schedule) && other.schedule.stage_rank() == schedule.stage_rank();
    });
    if (!known) out.push_back({name, std::move(schedule)});
  }
  return out;
}

struct RowFlip {
  enum class How { swap, drop, duplicate, kind, stage, microbatch, move, split };
  How how;
  int rank;               // of the action
  std::size_t at;         // position of the action
  int other_rank = 0;     // duplicate, move: target rank
  std::size_t to = 0;     // swap: the other action; duplicate, move: target position; split: position of W
  std::int32_t value = 0; // kind, stage, microbatch: new value
};

inline const char* name_of(RowFlip::How how) {
  constexpr const char* kNames[] = {"swap", "drop", "duplicate", "kind", "stage", "microbatch", "move", "split"};
  return kNames[static_cast<std::size_t>(how)];
}

namespace flips {

/// Adds the flip for every position in every row; in its own row, for positions before and after it.
inline void add_places(std::vector<RowFlip>& out, const Schedule& schedule, RowFlip flip) {
  for (flip.other_rank = 0; flip.other_rank < schedule.ranks(); ++flip.other_rank) {
    const bool moves_at_home = flip.how == RowFlip::How::move && flip.other_rank == flip.rank;
    const std::size_t places = schedule.row(flip.other_rank).size() + (moves_at_home ? 0 : 1);
    for (flip.to = 0; flip.to < places; ++flip.to)
      if (!moves_at_home || flip.to + 1 < flip.at || flip.to > flip.at + 1) out.push_back(flip); // the others are swaps
  }
}

inline void add_values(std::vector<RowFlip>& out, const PipelineShape& shape, const Action& cell, RowFlip flip) {
  const auto each = [&](RowFlip::How how, std::int32_t first, std::int32_t end, std::int32_t now) {
    flip.how = how;
    for (flip.value = first; flip.value < end; ++flip.value)
      if (flip.value != now) out.push_back(flip);
  };
  each(RowFlip::How::kind, 0, 4, static_cast<std::int32_t>(cell.kind));
  each(RowFlip::How::stage, -1, shape.stages() + 1, cell.stage); // also an invalid one at each end
  each(RowFlip::How::microbatch, -1, shape.microbatches + 1, cell.microbatch);
}

} // namespace flips

/// All flips. A split turns a B into its I, with the W at a later position.
inline std::vector<RowFlip> row_flips(const Schedule& schedule, const PipelineShape& shape) {
  std::vector<RowFlip> out;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    const std::vector<Action>& row = schedule.row(rank);
    for (std::size_t at = 0; at < row.size(); ++at) {
      for (std::size_t to = at + 1; to < row.size(); ++to) out.push_back({RowFlip::How::swap, rank, at, rank, to});
      out.push_back({RowFlip::How::drop, rank, at});
      flips::add_places(out, schedule, {RowFlip::How::duplicate, rank, at});
      flips::add_places(out, schedule, {RowFlip::How::move, rank, at});
      flips::add_values(out, shape, row[at], {RowFlip::How::kind, rank, at});
      if (row[at].kind != ComputeKind::backward) continue;
      for (std::size_t to = at + 1; to <= row.size(); ++to) out.push_back({RowFlip::How::split, rank, at, rank, to});
    }
  }
  return out;
}

inline Schedule flipped(const Schedule& schedule, const RowFlip& flip) {
  Schedule out = schedule;
  std::vector<Action>& row = out.row(flip.rank);
  std::vector<Action>& other = out.row(flip.other_rank);
  const auto at = static_cast<std::ptrdiff_t>(flip.at), to = static_cast<std::ptrdiff_t>(flip.to);
  Action& cell = row[flip.at];
  const Action before = cell;
  switch (flip.how) {
    case RowFlip::How::swap:
      std::swap(cell, row[flip.to]);
      break;
    case RowFlip::How::drop:
      row.erase(row.begin() + at);
      break;
    case RowFlip::How::duplicate:
      other.insert(other.begin() + to, before);
      break;
    case RowFlip::How::move:
      row.erase(row.begin() + at);
      other.insert(other.begin() + to, before);
      break;
    case RowFlip::How::kind:
      cell.kind = static_cast<ComputeKind>(flip.value);
      break;
    case RowFlip::How::stage:
      cell.stage = flip.value;
      break;
    case RowFlip::How::microbatch:
      cell.microbatch = flip.value;
      break;
    case RowFlip::How::split:
      cell.kind = ComputeKind::backward_input;
      row.insert(row.begin() + to, backward_weight(before.stage, before.microbatch));
      break;
  }
  return out;
}

} // namespace triax::test
