// What waits for what, over the programs of all pipeline ranks: one graph for the proof that nothing waits in a circle.
//
// Threads: values, read-only once made. Ownership: refers to the programs. Blocking: never.
//
// Every action has two nodes, its start and its end. Edges come from
//   the lists   a compute action starts after the one before has ended; a transfer is posted after them too;
//   waits       as the program names them;
//   matches     a receive ends after its send has started, and under rendezvous a send after its receive has;
//   queues      under `serial` a rank's transfers follow one another, else those of one directed edge do;
//   posts       where they block, the next action starts after the transfer has ended;
//   meetings    REDUCE_TIED and NORM end on no rank before they have started on all.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "schedule/verify.hpp"

namespace triax::schedule {

class Graph {
 public:
  /// The programs' edges must have been found in order.
  Graph(std::span<const Program> programs, const Assumptions& assumptions);

  /// Actions that wait for one another, each for the one after it and the last for the first; empty: there are none.
  struct Place {
    int rank = 0;
    ActionId action = 0;
    bool operator==(const Place&) const = default;
  };
  std::vector<Place> circle() const;

 private:
  using Node = std::size_t;
  Node start(int rank, ActionId action) const { return 2 * (base_[static_cast<std::size_t>(rank)] + action); }
  Node end(int rank, ActionId action) const { return start(rank, action) + 1; }
  void after(Node later, Node earlier) { earlier_[later].push_back(earlier); }
  void add_lists(const Program& program);
  void add_queues(const Program& program);
  void add_matches();
  void add_meetings();
  Place place(Node node) const;

  std::span<const Program> programs_;
  Assumptions assumptions_;
  std::vector<std::size_t> base_; // number of a rank's first action
  std::vector<std::vector<Node>> earlier_;
};

} // namespace triax::schedule
