// SPDX-License-Identifier: Apache-2.0
// The edges of a pipeline group that have their own communicator, and the rounds in which these are created.
//
// Threads: any; pure functions.
//
// An edge leads from a member to a neighbour on the ring of the group, in either direction. Splits of the group's
// communicator create the edge communicators, and all members call each split. In one round each member belongs to at
// most one edge, so one split creates a round. The rounds depend on the group size only, so all members agree.
#pragma once

#include <vector>

namespace triax::comm_nccl {

struct Edge {
  int from = 0, to = 0; // members
  bool operator==(const Edge&) const = default;
};

/// Ranks of the two ends in an edge's communicator.
inline constexpr int kSender = 0, kReceiver = 1;

/// No member is in two edges of a round, and each edge is in exactly one round.
inline std::vector<std::vector<Edge>> rounds_of_edges(int members) {
  std::vector<std::vector<Edge>> rounds;
  const int edges = members == 2 ? 1 : members; // the ring of two has one edge in each direction
  const auto add = [&](int first, int step, int end, bool forward) {
    std::vector<Edge> round;
    for (int at = first; at < end; at += step) {
      const int next = (at + 1) % members;
      round.push_back(forward ? Edge{at, next} : Edge{next, at});
    }
    if (!round.empty()) rounds.push_back(round);
  };
  const int paired = edges - edges % 2; // the last edge of an odd ring conflicts with both kinds of round
  for (const bool forward : {true, false}) {
    if (members < 2) break;
    if (members == 2) {
      add(0, 2, 1, forward);
      continue;
    }
    add(0, 2, paired, forward);
    add(1, 2, paired, forward);
    if (edges % 2 == 1) add(edges - 1, 1, edges, forward);
  }
  return rounds;
}

/// Index of the edge of a round that `member` belongs to, or -1.
inline int edge_of(const std::vector<Edge>& round, int member) {
  for (std::size_t i = 0; i < round.size(); ++i)
    if (round[i].from == member || round[i].to == member) return static_cast<int>(i);
  return -1;
}

/// The member's neighbours on the ring, each once.
inline std::vector<int> neighbours(int members, int member) {
  std::vector<int> out;
  if (members < 2) return out;
  out.push_back((member + 1) % members);
  if (members > 2) out.push_back((member + members - 1) % members);
  return out;
}

} // namespace triax::comm_nccl
