// SPDX-License-Identifier: Apache-2.0
// Verification of the programs of all ranks: each program alone, the order on the edges, and deadlocks.
#include <algorithm>
#include <map>
#include <utility>

#include "schedule/graph.hpp"
#include "schedule/verify_rank.hpp"

namespace triax::schedule {

namespace {

using Rule = Violation::Rule;

constexpr std::size_t kMaxNamed = 12; // actions of a cycle that a message lists

class ProgramsCheck {
 public:
  ProgramsCheck(std::span<const Program> programs, const Purpose& purpose, const Assumptions& assumptions)
      : programs_(programs), purpose_(purpose), assumptions_(assumptions) {}

  std::vector<Violation> run() {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      if (programs_[rank].rank() != static_cast<int>(rank))
        return {{.rule = Rule::programs_by_rank, .has = static_cast<int>(rank), .wanted = programs_[rank].rank()}};
    check_stage_maps();
    if (!violations_.empty()) return std::move(violations_);
    for (const Program& program : programs_)
      std::ranges::move(verify_rank(program, purpose_), std::back_inserter(violations_));
    if (violations_.empty()) check_edges();
    if (violations_.empty()) check_cycles();
    return std::move(violations_);
  }

 private:
  ActionRef ref_of(int rank, ActionId at) const {
    const ProgramAction& of = action(rank, at);
    return {rank, at, of.kind, of.stage, of.microbatch};
  }

  void check_stage_maps() {
    const auto count = static_cast<int>(programs_.size());
    if (count != purpose_.shape.pipeline)
      violations_.push_back({.rule = Rule::programs_per_rank, .has = count, .wanted = purpose_.shape.pipeline});
    for (const Program& program : programs_)
      if (program.stage_map() != programs_[0].stage_map() || program.stage_map().stages() != purpose_.shape.stages())
        violations_.push_back({.rule = Rule::one_stage_map, .at = {.rank = program.rank()}});
    for (const Program& program : programs_)
      if (program.boundaries() != programs_[0].boundaries())
        violations_.push_back({.rule = Rule::one_boundary, .at = {.rank = program.rank()}});
    for (const Program& program : programs_)
      if (program.sharding() != programs_[0].sharding())
        violations_.push_back({.rule = Rule::one_sharding, .at = {.rank = program.rank()}});
  }

  /// Sends and receives of an edge, each in program order.
  struct Edge {
    std::vector<ActionId> sent, received;
  };

  const ProgramAction& action(int rank, ActionId at) const {
    return programs_[static_cast<std::size_t>(rank)].actions()[at];
  }
  bool match(const ProgramAction& send, const ProgramAction& receive) const {
    const Need& need = rule(receive.kind).needs.front();
    return send.kind == need.kind && send.stage == stage_of(need, receive.stage) &&
           send.microbatch == receive.microbatch;
  }

  void check_edges() {
    std::map<std::pair<int, int>, Edge> edges; // from, to
    for (const Program& program : programs_)
      for (std::size_t at = 0; at < program.actions().size(); ++at) {
        const ProgramAction& action = program.actions()[at];
        const auto id = static_cast<ActionId>(at);
        if (sends(action.kind)) edges[{program.rank(), action.peer}].sent.push_back(id);
        if (receives(action.kind)) edges[{action.peer, program.rank()}].received.push_back(id);
      }
    for (const auto& [ends, edge] : edges) check_edge(ends.first, ends.second, edge.sent, edge.received);
  }
  void check_edge(int from, int to, const std::vector<ActionId>& sent, const std::vector<ActionId>& received) {
    for (std::size_t k = 0; k < std::min(sent.size(), received.size()); ++k) {
      if (match(action(from, sent[k]), action(to, received[k]))) continue;
      violations_.push_back({.rule = Rule::one_order_per_edge,
                             .at = ref_of(from, sent[k]),
                             .others = {ref_of(to, received[k])},
                             .has = static_cast<int>(k)});
      return;
    }
    if (sent.size() > received.size())
      violations_.push_back({.rule = Rule::received, .at = ref_of(from, sent[received.size()]), .has = to});
    if (sent.size() < received.size())
      violations_.push_back({.rule = Rule::sent, .at = ref_of(to, received[sent.size()]), .has = from});
  }

  void check_cycles() {
    const std::vector<Graph::Entry> cycle = Graph(programs_, assumptions_).find_cycle();
    if (cycle.empty()) return;
    const std::size_t named = std::min(cycle.size(), kMaxNamed);
    Violation violation{.rule = Rule::no_cycle,
                        .at = ref_of(cycle[0].rank, cycle[0].action),
                        .has = static_cast<int>(cycle.size() - named),
                        .assumptions = assumptions_};
    for (std::size_t i = 1; i < named; ++i) violation.others.push_back(ref_of(cycle[i].rank, cycle[i].action));
    violations_.push_back(std::move(violation));
  }

  std::span<const Program> programs_;
  const Purpose& purpose_;
  Assumptions assumptions_;
  std::vector<Violation> violations_;
};

} // namespace

Guarantee guarantee_of(const CommTraits& traits, std::size_t largest) {
  const bool buffers = traits.send == CommTraits::Send::buffered && traits.buffered_bytes >= largest;
  return {traits.order, buffers ? CommTraits::Send::buffered : CommTraits::Send::rendezvous, traits.post};
}

Guarantee both(const Guarantee& one, const Guarantee& other) { // enumerators go from strict to loose, but those of Post
  return {std::min(one.order, other.order), std::min(one.send, other.send), std::max(one.post, other.post)};
}

std::vector<Violation> verify(std::span<const Program> programs, const Purpose& purpose,
                              const Assumptions& assumptions) {
  return ProgramsCheck(programs, purpose, assumptions).run();
}

} // namespace triax::schedule
