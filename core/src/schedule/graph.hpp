// What waits for what: one graph for the proof that nothing waits in a circle and for the simulation, whose times are
// the longest paths through it.
//
// Threads: values, read-only once made. Ownership: owns its edges; refers to nothing. Blocking: never.
//
// Every action has two nodes, its start and its end, and every meeting one. Of the programs of all pipeline ranks,
// edges come from
//   the lists   a compute action starts after the one before has ended; a transfer is posted after them too;
//   waits       as the program names them;
//   matches     a receive ends after its send has started, and under rendezvous a send after its receive has;
//   queues      what `serial` backends carry follows one another on a rank, transfers and passes alike; of other
//               transfers, those of one directed edge do;
//   posts       where they block, the next action starts after the transfer has ended;
//   sets        where a program posts sends and receives in sets, those of one start together, and what comes after a
//               transfer comes after all of its set; on each edge they keep their order;
//   meetings    REDUCE_TIED and NORM end on no rank before they have started on all.
// Of rows, which have no transfers yet, they come from the lists and from what the rule table says an action needs.
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
  /// The programs' edges must have been found in order.
  Graph(std::span<const Program> programs, const Assumptions& assumptions);
  /// Error if an action needs one that is not in the rows.
  Graph(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map);

  struct Place {
    int rank = 0;
    ActionId action = 0;
    bool operator==(const Place&) const = default;
  };
  /// Actions that wait for one another, each for the one after it and the last for the first; empty: there are none.
  std::vector<Place> circle() const;

  struct Time {
    double start = 0, end = 0;
  };
  /// When each action starts and ends if all start as early as they can, by rank and position: each takes
  /// `duration(rank, position)`, and what crosses from one rank to another takes `link` more. Error if there is a
  /// circle.
  template <class Duration>
  std::vector<std::vector<Time>> times(Duration duration, double link) const {
    std::vector<double> of_action(actions());
    for (std::size_t rank = 0; rank + 1 < base_.size(); ++rank)
      for (std::size_t at = base_[rank]; at < base_[rank + 1]; ++at) of_action[at] = duration(rank, at - base_[rank]);
    return longest_paths(of_action, link);
  }

 private:
  using Node = std::uint32_t; // twice the number of the action, over all ranks, one more for its end; then meetings
  struct Edge {
    Node earlier = 0, later = 0;
    bool crosses = false; // to another rank: through a link
  };
  struct Next {
    Node node : 31;
    Node crosses : 1;
  };

  std::size_t actions() const { return base_.back(); }
  std::size_t nodes() const { return 2 * actions() + meetings_; }
  Node start(int rank, std::size_t action) const {
    return static_cast<Node>(2 * (base_[static_cast<std::size_t>(rank)] + action));
  }
  Node end(int rank, std::size_t action) const { return start(rank, action) + 1; }
  Node start(const Place& place) const { return start(place.rank, place.action); }
  Node end(const Place& place) const { return end(place.rank, place.action); }
  void after(Node later, Node earlier, bool crosses = false) { edges_.push_back({earlier, later, crosses}); }

  using Meetings = std::map<Kind, std::vector<Place>>;
  void add_meetings(const Meetings& meetings);
  void add_list(const Program& program, const Assumptions& assumptions, Meetings& meetings);
  void add_queues(const Program& program, const Assumptions& assumptions);
  void add_one_queue(const Program& program, const Assumptions& assumptions);
  void add_matches(std::span<const Program> programs, const Assumptions& assumptions);
  void add_needs(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map);
  void index_edges();

  /// Visits what waits for nothing that has not been visited; returns how many edges are left into each node.
  template <class Visit>
  std::vector<std::uint32_t> walk(Visit visit) const;
  std::vector<std::vector<Time>> longest_paths(std::span<const double> of_action, double link) const;
  Place place(Node node) const;

  std::vector<std::size_t> base_; // number of a rank's first action, and of all at the end
  std::size_t meetings_ = 0;
  std::vector<Edge> edges_;                            // as they were found
  std::vector<std::uint32_t> first_next_, edges_into_; // by node
  std::vector<Next> next_;                             // the edges, by the node that they leave
};

} // namespace triax::schedule
