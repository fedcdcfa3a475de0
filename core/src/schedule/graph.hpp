// SPDX-License-Identifier: Apache-2.0
// Dependency graph of a step. The verifier searches it for cycles (deadlocks); the simulator computes times as longest
// paths.
//
// Threads: read-only after construction.
//
// Each action has two nodes, its start and its end; each sync point (an action that all pipeline ranks must start
// before any completes it) has one more node. For programs of all pipeline ranks, the dependencies are:
//   lists       a compute action starts after the previous one has ended; a transfer is posted after it too;
//   waits       the waits of the program;
//   matches     a receive ends after its send has started; under rendezvous, a send ends after its receive has started;
//   queues      everything that `serial` backends carry runs in order on a rank, transfers and passes alike; other
//               transfers run in order on each edge between ranks;
//   posts       if posts block, the next action starts after the transfer has ended;
//   sets        if a program posts sends and receives in sets, those of a set start together, and what comes after a
//               transfer comes after its whole set; the order on each edge is kept;
//   sync points REDUCE_TIED and NORM end on no rank before they have started on all.
// For rows, which have no transfers yet, the dependencies are the lists and the needs of the rule table.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "schedule/assumptions.hpp"
#include "schedule/program.hpp"

namespace triax::schedule {

class Graph {
 public:
  /// The order on the edges of the programs must already be verified.
  Graph(std::span<const Program> programs, const Assumptions& assumptions);
  /// Throws Error if a needed action is not in the rows.
  Graph(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map);

  struct Entry {
    int rank = 0;
    ActionId action = 0;
    bool operator==(const Entry&) const = default;
  };
  /// Actions of a cycle: each waits for the next one, and the last for the first. Empty: there is no cycle.
  std::vector<Entry> find_cycle() const;

  struct Time {
    double start = 0, end = 0;
  };
  /// How long an action takes, and then a transfer of what it produces to another rank. Under rendezvous, a send ends
  /// no earlier than its receive has started and the link of the receive has passed.
  struct Lengths {
    double action = 0, link = 0;
  };
  /// Start and end of each action, by rank and position, if all start as early as possible, with
  /// `lengths(rank, position)`. Throws Error if there is a cycle.
  template <class OfAction>
  std::vector<std::vector<Time>> times(OfAction lengths) const {
    std::vector<Lengths> of_action(actions());
    for (std::size_t rank = 0; rank + 1 < base_.size(); ++rank)
      for (std::size_t at = base_[rank]; at < base_[rank + 1]; ++at) of_action[at] = lengths(rank, at - base_[rank]);
    return longest_paths(of_action);
  }

 private:
  /// Start of an action: twice its number over all ranks; its end: one more. The sync points follow.
  using Node = std::uint32_t;
  struct Next {
    Node node : 31;
    Node crosses : 1; // to another rank, through the link of the earlier action
  };
  struct Dependency {
    Node earlier;
    Next later;
  };

  std::size_t actions() const { return base_.back(); }
  std::size_t nodes() const { return 2 * actions() + sync_points_; }
  Node start(int rank, std::size_t action) const {
    return static_cast<Node>(2 * (base_[static_cast<std::size_t>(rank)] + action));
  }
  Node end(int rank, std::size_t action) const { return start(rank, action) + 1; }
  Node start(const Entry& entry) const { return start(entry.rank, entry.action); }
  Node end(const Entry& entry) const { return end(entry.rank, entry.action); }
  void after(Node later, Node earlier, bool crosses = false) { dependencies_.push_back({earlier, {later, crosses}}); }
  bool starts_action(Node node) const { return node % 2 == 0 && node < 2 * actions(); }

  using SyncPoints = std::map<Kind, std::vector<Entry>>;
  void add_sync_points(const SyncPoints& sync_points);
  void add_list(const Program& program, const Assumptions& assumptions, SyncPoints& sync_points);
  void add_queues(const Program& program, const Assumptions& assumptions);
  void add_one_queue(const Program& program, const Assumptions& assumptions);
  void add_matches(std::span<const Program> programs, const Assumptions& assumptions);
  void add_needs(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map);
  void index_dependencies();

  /// Visits the dependencies in topological order; returns for each node how many on earlier nodes were not visited.
  template <class Visit>
  std::vector<std::uint32_t> walk(Visit visit) const;
  std::vector<std::vector<Time>> longest_paths(std::span<const Lengths> of_action) const;
  Entry entry_of(Node node) const;

  std::vector<std::size_t> base_; // number of each rank's first action; last entry: number of all actions
  std::size_t sync_points_ = 0;
  std::vector<Dependency> dependencies_;          // but those from start to end of an action; in order of insertion
  std::vector<std::uint32_t> first_next_, needs_; // by node
  std::vector<Next> next_;                        // the dependent nodes, by node
};

} // namespace triax::schedule
