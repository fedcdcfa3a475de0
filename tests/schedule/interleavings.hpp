// SPDX-License-Identifier: Apache-2.0
// Exhaustive search over every order in which ranks can run their actions; tests compare the verifier's results with
// it. It shares nothing with the verifier: the dependencies of F, B, I and W are written here by hand.
//
// Threads: one. Ownership: values. Blocking: never. Time: proportional to the number of states, so for small sizes
// only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "triax/scheduler.hpp"

namespace triax::test {

inline constexpr int kMaxSearchedRanks = 4;
inline constexpr const char* kDeadlock = "all remaining ranks wait indefinitely";

/// Number of actions that each rank has run.
using Progress = std::array<std::uint8_t, kMaxSearchedRanks>;

struct SearchResult {
  std::string fault{}; // first fault that some order leads to; empty: none
  std::size_t states = 0;
  bool safe() const { return fault.empty(); }
};

/// Breadth-first search over all states; each level has the states after the same number of steps. Orders with the same
/// steps lead to the same state, so duplicates are in one level. A state without a next state must be the end.
/// StateSpace::next(state, out) adds the states one step later, and returns a fault if a step has one.
template <class StateSpace>
SearchResult search(const StateSpace& space) {
  std::vector<typename StateSpace::State> level{space.begin()}, following;
  SearchResult out;
  for (; !level.empty(); std::swap(level, following)) {
    following.clear();
    for (const auto& state : level) {
      ++out.states;
      const std::size_t before = following.size();
      out.fault = space.next(state, following);
      if (out.fault.empty() && following.size() == before && !space.is_end(state)) out.fault = kDeadlock;
      if (!out.fault.empty()) return out;
    }
    std::ranges::sort(following);
    following.erase(std::unique(following.begin(), following.end()), following.end());
  }
  return out;
}

/// Rows: each rank runs its row in order, each action as soon as its dependencies have completed.
class RowsSpace {
 public:
  using State = Progress;

  RowsSpace(const Schedule& schedule, const PipelineShape& shape) : schedule_(schedule), shape_(shape) {
    for (int rank = 0; rank < schedule.ranks(); ++rank)
      for (std::size_t at = 0; at < schedule.row(rank).size(); ++at) add(rank, at, schedule.row(rank)[at]);
    const auto expected = static_cast<std::size_t>(3 * shape.stages() * shape.microbatches);
    if (fault_.empty() && locations_.size() != expected) fault_ = "missing action";
  }

  State begin() const { return {}; }
  bool is_end(const State& state) const {
    for (int rank = 0; rank < schedule_.ranks(); ++rank)
      if (state[static_cast<std::size_t>(rank)] < schedule_.row(rank).size()) return false;
    return true;
  }
  std::string next(const State& state, std::vector<State>& out) const {
    if (!fault_.empty()) return fault_;
    for (int rank = 0; rank < schedule_.ranks(); ++rank) {
      const std::size_t at = state[static_cast<std::size_t>(rank)];
      if (at == schedule_.row(rank).size() || !can_run(schedule_.row(rank)[at], state)) continue;
      out.push_back(state);
      ++out.back()[static_cast<std::size_t>(rank)];
    }
    return {};
  }

 private:
  using Cell = std::tuple<char, int, int>; // F, I or W; stage; microbatch
  struct Location {
    int rank;
    std::size_t at;
  };

  void add(int rank, std::size_t at, const Action& action) {
    if (action.stage < 0 || action.stage >= shape_.stages() || action.microbatch < 0 ||
        action.microbatch >= shape_.microbatches) {
      fault_ = "no such stage or microbatch";
      return;
    }
    if (schedule_.stage_rank()[0][static_cast<std::size_t>(action.stage)] != rank) fault_ = "stage is on another rank";
    const std::string parts = action.kind == ComputeKind::forward          ? "F"
                              : action.kind == ComputeKind::backward       ? "IW"
                              : action.kind == ComputeKind::backward_input ? "I"
                                                                           : "W";
    for (const char part : parts)
      if (!locations_.try_emplace({part, action.stage, action.microbatch}, Location{rank, at}).second)
        fault_ = "duplicate action";
  }

  bool done(char part, int stage, int microbatch, const State& state) const {
    const Location& location = locations_.at({part, stage, microbatch});
    return location.at < state[static_cast<std::size_t>(location.rank)];
  }
  bool can_run(const Action& action, const State& state) const {
    const int stage = action.stage, mb = action.microbatch;
    if (action.kind == ComputeKind::forward) return stage == 0 || done('F', stage - 1, mb, state);
    if (action.kind == ComputeKind::backward_weight) return done('I', stage, mb, state);
    return done('F', stage, mb, state) && (stage + 1 == shape_.stages() || done('I', stage + 1, mb, state));
  }

  const Schedule& schedule_;
  PipelineShape shape_;
  std::map<Cell, Location> locations_;
  std::string fault_;
};

/// True if input gradients and weight gradients of each stage are in ascending order of microbatches. The order affects
/// the bits of sums, but cannot cause a deadlock.
inline bool gradients_ascend(const Schedule& schedule) {
  std::map<std::pair<int, bool>, int> last; // by stage; true: weight gradient
  bool ascend = true;
  const auto check = [&](const Action& action, bool weight) {
    const auto [entry, first] = last.try_emplace({action.stage, weight}, action.microbatch);
    ascend = ascend && (first || entry->second < action.microbatch);
    entry->second = action.microbatch;
  };
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    for (const Action& action : schedule.row(rank)) {
      if (action.kind == ComputeKind::forward) continue;
      if (action.kind != ComputeKind::backward_weight) check(action, false);
      if (action.kind != ComputeKind::backward_input) check(action, true);
    }
  return ascend;
}

} // namespace triax::test
