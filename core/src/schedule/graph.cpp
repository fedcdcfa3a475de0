// SPDX-License-Identifier: Apache-2.0
// Creates the dependencies of the graph, finds cycles, and computes longest paths.
#include "schedule/graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "schedule/dense_table.hpp"
#include "triax/error.hpp"

namespace triax::schedule {

namespace {

constexpr std::size_t kMaxNodes = std::size_t{1} << 31;

/// The largest microbatch number plus one.
template <class Lists>
int microbatches_of(const Lists& lists) {
  int out = 0;
  for (const auto& list : lists)
    for (const auto& action : list) out = std::max(out, action.microbatch + 1);
  return out;
}

/// Whether the action belongs to a set.
bool in_set(const Program& program, const ProgramAction& action) {
  return program.posts() == Program::Posts::sets && (sends(action.kind) || receives(action.kind));
}

std::vector<std::span<const ProgramAction>> lists_of(std::span<const Program> programs) {
  std::vector<std::span<const ProgramAction>> out;
  out.reserve(programs.size());
  for (const Program& program : programs) out.push_back(program.actions());
  return out;
}

template <class Lists>
std::vector<std::size_t> bases_of(const Lists& lists) {
  std::vector<std::size_t> out{0};
  for (const auto& list : lists) out.push_back(out.back() + list.size());
  TRIAX_REQUIRE(2 * out.back() + kKinds < kMaxNodes, "{} actions are too many for one graph", out.back());
  return out;
}

} // namespace

Graph::Graph(std::span<const Program> programs, const Assumptions& assumptions) : base_(bases_of(lists_of(programs))) {
  dependencies_.reserve(4 * actions());
  SyncPoints sync_points;
  for (const Program& program : programs) {
    add_list(program, assumptions, sync_points);
    add_queues(program, assumptions);
  }
  add_matches(programs, assumptions);
  add_sync_points(sync_points);
  index_dependencies();
}

/// Uses one extra node per sync point, because dependencies between all pairs would be too many.
void Graph::add_sync_points(const SyncPoints& sync_points) {
  for (const auto& [kind, entries] : sync_points) {
    const auto sync_point = static_cast<Node>(nodes());
    ++sync_points_;
    for (const Entry& entry : entries) {
      after(sync_point, start(entry));
      after(end(entry), sync_point);
    }
  }
}

Graph::Graph(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map) : base_(bases_of(rows)) {
  dependencies_.reserve(4 * actions());
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    for (std::size_t at = 0; at < rows[rank].size(); ++at) {
      const int row = static_cast<int>(rank);
      if (at > 0) after(start(row, at), end(row, at - 1));
    }
  add_needs(rows, stage_map);
  index_dependencies();
}

void Graph::add_list(const Program& program, const Assumptions& assumptions, SyncPoints& sync_points) {
  const int rank = program.rank();
  Node reached = 0; // last action that the host has finished, if `any`
  bool any = false;
  std::vector<Node> set; // if posts block: ends of the set that the host waits for
  const std::span<const ProgramAction> actions = program.actions();
  for (std::size_t at = 0; at < actions.size(); ++at) {
    if (any) after(start(rank, at), reached);
    for (const ActionId waited : actions[at].waits) after(start(rank, at), end(rank, waited));
    if (rule(actions[at].kind).joins) sync_points[actions[at].kind].push_back({rank, static_cast<ActionId>(at)});
    const bool blocks = assumptions.of(actions[at].kind).post == CommTraits::Post::blocking;
    if (is_transfer(actions[at].kind) && !blocks) continue;
    if (in_set(program, actions[at])) {
      set.push_back(end(rank, at));
      continue;
    }
    for (const Node of_set : set) after(start(rank, at), of_set);
    set.clear();
    reached = end(rank, at);
    any = true;
  }
}

void Graph::add_queues(const Program& program, const Assumptions& assumptions) {
  std::map<std::pair<int, bool>, std::size_t> last; // by peer and direction; reductions have no peer
  const std::span<const ProgramAction> actions = program.actions();
  for (std::size_t at = 0; at < actions.size(); ++at) {
    const Kind kind = actions[at].kind;
    if (!is_transfer(kind) || (assumptions.queues(kind) && !in_set(program, actions[at]))) continue;
    const auto [entry, first] = last.try_emplace({actions[at].peer, sends(kind)}, at);
    if (!first) after(start(program.rank(), at), end(program.rank(), entry->second));
    entry->second = at;
  }
  add_one_queue(program, assumptions);
}

/// The queue of serial backends. A set has one position in it, represented by its last member.
void Graph::add_one_queue(const Program& program, const Assumptions& assumptions) {
  const std::span<const ProgramAction> actions = program.actions();
  const int rank = program.rank();
  std::optional<std::size_t> before; // the item before this set
  std::vector<std::size_t> set;
  for (std::size_t at = 0; at < actions.size(); ++at) {
    if (!assumptions.queues(actions[at].kind)) continue;
    if (before) after(start(rank, at), end(rank, *before));
    set.push_back(at);
    const bool goes_on = in_set(program, actions[at]) && at + 1 < actions.size() && in_set(program, actions[at + 1]);
    if (goes_on) continue;
    for (const std::size_t member : set)
      if (member != at) after(end(rank, at), end(rank, member));
    set.clear();
    before = at;
  }
}

void Graph::add_matches(std::span<const Program> programs, const Assumptions& assumptions) {
  const int stages = programs.empty() ? 0 : programs[0].stage_map().stages();
  Cells<Entry> begun(2, stages, microbatches_of(lists_of(programs)), Entry{}); // SEND_F, SEND_B
  const auto begun_of = [&begun](Kind send, int stage, int microbatch) -> Entry& {
    return begun.at(send == Kind::send_f ? 0 : 1, stage, microbatch);
  };
  const auto each = [programs](auto visit) {
    for (const Program& program : programs)
      for (std::size_t at = 0; at < program.actions().size(); ++at)
        visit(Entry{program.rank(), static_cast<ActionId>(at)}, program.actions()[at]);
  };
  each([&](const Entry& entry, const ProgramAction& action) {
    if (sends(action.kind)) begun_of(action.kind, action.stage, action.microbatch) = entry;
  });
  each([&](const Entry& entry, const ProgramAction& action) {
    if (!receives(action.kind)) return;
    const Need& need = rule(action.kind).needs.front();
    const Entry& send = begun_of(need.kind, stage_of(need, action.stage), action.microbatch);
    after(end(entry), start(send), true);
    if (assumptions.edges.send == CommTraits::Send::rendezvous) after(end(send), start(entry), true);
  });
}

void Graph::add_needs(const std::vector<std::vector<Action>>& rows, const StageMap& stage_map) {
  constexpr Node kNone = std::numeric_limits<Node>::max();
  constexpr int kPasses = static_cast<int>(Kind::backward_weight) + 1;
  Cells<Node> ends(kPasses, stage_map.stages(), microbatches_of(rows), kNone);
  const auto each = [&rows](auto visit) {
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      for (std::size_t at = 0; at < rows[rank].size(); ++at) visit(static_cast<int>(rank), at, rows[rank][at]);
  };
  each([&](int rank, std::size_t at, const Action& action) {
    TRIAX_REQUIRE(action.stage >= 0 && action.stage < stage_map.stages() && action.microbatch >= 0,
                  "rank {}, action {}: there is no {}", rank, at, to_text(action));
    const bool whole = action.kind == ComputeKind::backward;
    for (const Kind kind :
         {whole ? Kind::backward_input : kind_of(action.kind), whole ? Kind::backward_weight : kind_of(action.kind)})
      ends.at(static_cast<int>(kind), action.stage, action.microbatch) = end(rank, at);
  });
  each([&](int rank, std::size_t at, const Action& action) {
    for (const Need& need : rule(kind_of(action.kind)).needs) {
      if (!need.condition.holds(stage_map.facts(action.stage))) continue;
      const Computing needed = computing_of(need, action.stage);
      const Node made = ends.at(static_cast<int>(needed.kind), needed.stage, action.microbatch);
      TRIAX_REQUIRE(made != kNone, "rank {} is blocked at action {}: no row has {}", rank, at,
                    action_text(needed.kind, needed.stage, action.microbatch));
      after(start(rank, at), made, stage_map.rank_of(needed.stage) != rank);
    }
  });
}

void Graph::index_dependencies() {
  first_next_.assign(nodes() + 1, 0);
  needs_.assign(nodes(), 0);
  for (std::size_t action = 0; action < actions(); ++action) needs_[2 * action + 1] = 1; // its start
  for (const Dependency& of : dependencies_) {
    ++first_next_[of.earlier + 1];
    ++needs_[of.later.node];
  }
  for (std::size_t node = 0; node < nodes(); ++node) first_next_[node + 1] += first_next_[node];
  next_.resize(dependencies_.size());
  std::vector<std::uint32_t> at(first_next_.begin(), first_next_.end() - 1);
  for (const Dependency& of : dependencies_) next_[at[of.earlier]++] = of.later;
}

template <class Visit>
std::vector<std::uint32_t> Graph::walk(Visit visit) const {
  std::vector<std::uint32_t> open = needs_;
  std::vector<Node> free;
  for (Node node = 0; node < open.size(); ++node)
    if (open[node] == 0) free.push_back(node);
  const auto follow = [&](Node node, const Next& next) {
    visit(node, next);
    if (--open[next.node] == 0) free.push_back(next.node);
  };
  while (!free.empty()) {
    const Node node = free.back();
    free.pop_back();
    for (std::uint32_t at = first_next_[node]; at < first_next_[node + 1]; ++at) follow(node, next_[at]);
    if (starts_action(node)) follow(node, {node + 1, 0});
  }
  return open;
}

Graph::Entry Graph::entry_of(Node node) const {
  const std::size_t action = node / 2;
  const auto rank = std::ranges::upper_bound(base_, action) - base_.begin() - 1;
  return {static_cast<int>(rank), static_cast<ActionId>(action - base_[static_cast<std::size_t>(rank)])};
}

std::vector<Graph::Entry> Graph::find_cycle() const {
  const std::vector<std::uint32_t> open = walk([](Node, const Next&) {});
  const auto stuck = std::ranges::find_if(open, [](std::uint32_t count) { return count > 0; });
  if (stuck == open.end()) return {};
  constexpr Node kNone = std::numeric_limits<Node>::max();
  std::vector<Node> before(open.size(), kNone); // for nodes on or behind a cycle: a predecessor of the same sort
  for (Node node = 0; node < open.size(); ++node)
    if (open[node] > 0 && starts_action(node)) before[node + 1] = node; // an end is open if its start is
  for (const auto& [earlier, later] : dependencies_)
    if (open[earlier] > 0 && open[later.node] > 0 && before[later.node] == kNone) before[later.node] = earlier;
  // Going back from any remaining node leads into a cycle.
  std::vector<bool> visited(open.size());
  Node node = static_cast<Node>(stuck - open.begin());
  for (; !visited[node]; node = before[node]) visited[node] = true;
  std::vector<Entry> out;
  const Node first = node;
  do {
    const bool is_rendezvous = node >= 2 * actions();
    if (!is_rendezvous && (out.empty() || !(out.back() == entry_of(node)))) out.push_back(entry_of(node));
    node = before[node];
  } while (node != first);
  if (out.size() > 1 && out.front() == out.back()) out.pop_back();
  return out;
}

std::vector<std::vector<Graph::Time>> Graph::longest_paths(std::span<const Lengths> of_action) const {
  std::vector<double> at(nodes(), 0.0);
  const std::vector<std::uint32_t> open = walk([&](Node node, const Next& next) {
    const bool runs = next.node == node + 1 && starts_action(node); // from start to end of an action
    const double arrives =
        at[node] + (runs ? of_action[node / 2].action : 0) + (next.crosses ? of_action[node / 2].link : 0);
    at[next.node] = std::max(at[next.node], arrives);
  });
  std::vector<std::vector<Time>> out(base_.size() - 1);
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    out[rank].reserve(base_[rank + 1] - base_[rank]);
    for (std::size_t action = base_[rank]; action < base_[rank + 1]; ++action) {
      TRIAX_REQUIRE(open[2 * action] == 0 && open[2 * action + 1] == 0, "rank {} is blocked at action {}", rank,
                    action - base_[rank]);
      out[rank].push_back({at[2 * action], at[2 * action + 1]});
    }
  }
  return out;
}

} // namespace triax::schedule
