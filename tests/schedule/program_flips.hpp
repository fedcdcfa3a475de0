// SPDX-License-Identifier: Apache-2.0
// Programs that differ by one change (flip) from lowered programs.
//
// Threads: pure functions. Ownership: values; programs refer to nothing. Blocking: never.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "schedule/program.hpp"

namespace triax::test {

/// Programs as lists that can be changed. Waits keep referring to the same actions.
class BentPrograms {
 public:
  using Posts = schedule::Program::Posts;

  explicit BentPrograms(std::span<const schedule::Program> programs) {
    for (const schedule::Program& program : programs) {
      stage_map_ = program.stage_map();
      boundaries_ = program.boundaries();
      sharding_ = program.sharding();
      lists_.emplace_back(program.actions().begin(), program.actions().end());
      std::vector<schedule::Slots>& slots = slots_.emplace_back();
      for (const int stage : program.stages()) {
        schedule::Slots& of = slots.emplace_back();
        for (int pool = 0; pool < schedule::kPools; ++pool)
          of[static_cast<std::size_t>(pool)] = program.slots(stage, static_cast<schedule::Pool>(pool));
      }
    }
  }

  /// Gives each microbatch its own slot, and each stage its own accumulator and memory for weights, so that moved
  /// actions rarely find a slot in use.
  void add_slots(int microbatches) {
    for (std::vector<schedule::ProgramAction>& list : lists_)
      for (schedule::ProgramAction& action : list)
        for (schedule::Slots* slots : {&action.own, &action.handed})
          for (std::int32_t& slot : *slots)
            if (slot >= 0) slot = action.microbatch;
    for (std::vector<schedule::ProgramAction>& list : lists_)
      for (schedule::ProgramAction& action : list)
        for (std::int32_t* slot : {&action.accumulator, &action.weights})
          if (*slot >= 0) *slot = stage_map_.number_on_rank(action.stage);
    for (std::vector<schedule::Slots>& of_rank : slots_)
      for (schedule::Slots& slots : of_rank) slots.fill(microbatches);
  }

  int ranks() const { return static_cast<int>(lists_.size()); }
  std::vector<schedule::ProgramAction>& list(int rank) { return lists_[static_cast<std::size_t>(rank)]; }
  const std::vector<schedule::ProgramAction>& list(int rank) const { return lists_[static_cast<std::size_t>(rank)]; }

  void move(int rank, std::size_t from, std::size_t to) {
    std::vector<schedule::ProgramAction>& list = this->list(rank);
    const auto first = list.begin() + static_cast<std::ptrdiff_t>(std::min(from, to));
    const auto last = list.begin() + static_cast<std::ptrdiff_t>(std::max(from, to)) + 1;
    std::rotate(first, from < to ? first + 1 : last - 1, last);
    rename(rank, [from, to](std::size_t id) {
      if (id == from) return to;
      if (from < id && id <= to) return id - 1;
      return to <= id && id < from ? id + 1 : id;
    });
  }
  void swap(int rank, std::size_t one, std::size_t other) {
    const auto [first, second] = std::minmax(one, other);
    move(rank, second, first);
    move(rank, first + 1, second);
  }
  void drop(int rank, std::size_t at) {
    for (schedule::ProgramAction& action : list(rank)) std::erase(action.waits, static_cast<ActionId>(at));
    list(rank).erase(list(rank).begin() + static_cast<std::ptrdiff_t>(at));
    rename(rank, [at](std::size_t id) { return id > at ? id - 1 : id; });
  }
  void duplicate(int rank, std::size_t at, std::size_t to) {
    const schedule::ProgramAction copy = list(rank)[at];
    rename(rank, [to](std::size_t id) { return id >= to ? id + 1 : id; });
    list(rank).insert(list(rank).begin() + static_cast<std::ptrdiff_t>(to), copy);
  }

  std::vector<schedule::Program> programs(Posts posts) const {
    std::vector<schedule::Program> out;
    for (int rank = 0; rank < ranks(); ++rank)
      out.emplace_back(stage_map_, rank, slots_[static_cast<std::size_t>(rank)], list(rank), posts, boundaries_,
                       sharding_);
    return out;
  }

 private:
  template <class Name>
  void rename(int rank, Name name) {
    for (schedule::ProgramAction& action : list(rank))
      for (ActionId& waited : action.waits) waited = static_cast<ActionId>(name(waited));
  }

  schedule::StageMap stage_map_;
  schedule::Boundaries boundaries_ = schedule::Boundaries::whole;
  schedule::Sharding sharding_ = schedule::Sharding::none;
  std::vector<std::vector<schedule::ProgramAction>> lists_;
  std::vector<std::vector<schedule::Slots>> slots_;
};

struct ProgramFlip {
  enum class How {
    move,           // to a position; to the next position: swaps neighbours
    move_unwaited,  // to a position; the actions that it passes no longer wait for it
    drop_wait,      // `to`: index of the wait
    drop,           // a transfer, a gather, an R or a RESHARD
    duplicate,      // the same; the copy goes to a position
    swap,           // two transfers of an edge, at one end
    swap_both_ends, // two transfers of an edge, at both ends
    swap_names,     // the microbatches of two transfers of an edge
    accumulator,    // `to`: the new slot plus one; 0: none
    weights         // the same
  };
  How how;
  int rank;
  std::size_t at, to = 0;
};
inline constexpr int kProgramFlips = 10;

inline const char* name_of(ProgramFlip::How how) {
  constexpr const char* kNames[kProgramFlips] = {"move",        "move unwaited",   "drop a wait",       "drop",
                                                 "duplicate",   "swap at one end", "swap at both ends", "swap names",
                                                 "accumulator", "weights"};
  return kNames[static_cast<std::size_t>(how)];
}

namespace flips {

inline bool on_one_edge(const schedule::ProgramAction& one, const schedule::ProgramAction& other) {
  return one.peer >= 0 && one.peer == other.peer && schedule::sends(one.kind) == schedule::sends(other.kind);
}

/// Position of the other end of a transfer.
inline std::size_t other_end(const BentPrograms& programs, const schedule::ProgramAction& transfer) {
  using schedule::Kind;
  const bool forwards = transfer.kind == Kind::send_f || transfer.kind == Kind::recv_f;
  const bool to_after = transfer.kind == Kind::send_f || transfer.kind == Kind::recv_b;
  const Kind kind = schedule::sends(transfer.kind) ? (forwards ? Kind::recv_f : Kind::recv_b)
                                                   : (forwards ? Kind::send_f : Kind::send_b);
  const std::vector<schedule::ProgramAction>& list = programs.list(transfer.peer);
  const auto found = std::ranges::find_if(list, [&](const schedule::ProgramAction& action) {
    return action.kind == kind && action.stage == transfer.stage + (to_after ? 1 : -1) &&
           action.microbatch == transfer.microbatch;
  });
  return static_cast<std::size_t>(found - list.begin());
}

inline bool uses_accumulator(schedule::Kind kind) {
  return schedule::accumulates(kind) || kind == schedule::Kind::reduce_grad;
}
inline bool uses_weights(schedule::Kind kind) {
  return schedule::reads_weights(kind) || kind == schedule::Kind::unshard || kind == schedule::Kind::reshard;
}

/// Every other number, that of a new slot, and none.
inline void add_numbers(std::vector<ProgramFlip>& out, const BentPrograms& programs, ProgramFlip flip,
                        std::int32_t schedule::ProgramAction::*number) {
  const std::vector<schedule::ProgramAction>& list = programs.list(flip.rank);
  const std::int32_t most = std::ranges::max(list, {}, number).*number;
  for (std::int32_t to = -1; most >= 0 && to <= most + 1; ++to) {
    flip.to = static_cast<std::size_t>(to + 1);
    if (to != list[flip.at].*number) out.push_back(flip);
  }
}

} // namespace flips

/// All flips.
inline std::vector<ProgramFlip> program_flips(const BentPrograms& programs) {
  using How = ProgramFlip::How;
  std::vector<ProgramFlip> out;
  for (int rank = 0; rank < programs.ranks(); ++rank) {
    const std::vector<schedule::ProgramAction>& list = programs.list(rank);
    for (std::size_t at = 0; at < list.size(); ++at) {
      for (std::size_t to = 0; to < list.size(); ++to)
        if (to != at && to + 1 != at) out.push_back({How::move, rank, at, to});
      for (std::size_t wait = 0; wait < list[at].waits.size(); ++wait) out.push_back({How::drop_wait, rank, at, wait});
      if (flips::uses_accumulator(list[at].kind))
        flips::add_numbers(out, programs, {How::accumulator, rank, at}, &schedule::ProgramAction::accumulator);
      if (flips::uses_weights(list[at].kind))
        flips::add_numbers(out, programs, {How::weights, rank, at}, &schedule::ProgramAction::weights);
      const bool is_added = schedule::gathers(list[at].kind) || list[at].kind == schedule::Kind::gather_param ||
                            list[at].kind == schedule::Kind::reshard || list[at].kind == schedule::Kind::recompute;
      if (!schedule::is_transfer(list[at].kind) && !is_added) continue;
      out.push_back({How::drop, rank, at});
      for (const std::size_t to : {at + 1, list.size()}) out.push_back({How::duplicate, rank, at, to});
      if (is_added) continue;
      for (std::size_t to = at + 1; to < list.size(); ++to) out.push_back({How::move_unwaited, rank, at, to});
      for (std::size_t to = at + 1; to < list.size(); ++to)
        if (flips::on_one_edge(list[at], list[to])) {
          out.push_back({How::swap, rank, at, to});
          if (schedule::sends(list[at].kind)) out.push_back({How::swap_both_ends, rank, at, to});
          if (list[at].microbatch != list[to].microbatch) out.push_back({How::swap_names, rank, at, to});
        }
    }
  }
  return out;
}

inline void flip(BentPrograms& programs, const ProgramFlip& how) {
  std::vector<schedule::ProgramAction>& list = programs.list(how.rank);
  switch (how.how) {
    case ProgramFlip::How::move:
      return programs.move(how.rank, how.at, how.to);
    case ProgramFlip::How::move_unwaited:
      programs.move(how.rank, how.at, how.to);
      for (std::size_t passed = how.at; passed < how.to; ++passed)
        std::erase(list[passed].waits, static_cast<ActionId>(how.to));
      return;
    case ProgramFlip::How::drop_wait:
      list[how.at].waits.erase(list[how.at].waits.begin() + static_cast<std::ptrdiff_t>(how.to));
      return;
    case ProgramFlip::How::drop:
      return programs.drop(how.rank, how.at);
    case ProgramFlip::How::duplicate:
      return programs.duplicate(how.rank, how.at, how.to);
    case ProgramFlip::How::swap_both_ends:
      programs.swap(list[how.at].peer, flips::other_end(programs, list[how.at]),
                    flips::other_end(programs, list[how.to]));
      [[fallthrough]];
    case ProgramFlip::How::swap:
      return programs.swap(how.rank, how.at, how.to);
    case ProgramFlip::How::swap_names:
      std::swap(list[how.at].microbatch, list[how.to].microbatch);
      return;
    case ProgramFlip::How::accumulator:
      list[how.at].accumulator = static_cast<std::int32_t>(how.to) - 1;
      return;
    case ProgramFlip::How::weights:
      list[how.at].weights = static_cast<std::int32_t>(how.to) - 1;
      return;
  }
}

} // namespace triax::test
