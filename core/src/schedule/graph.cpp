// Edges, and the search for a circle.
#include "schedule/graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

ActionId id_of(std::size_t at) {
  return static_cast<ActionId>(at);
}

} // namespace

Graph::Graph(std::span<const Program> programs, const Assumptions& assumptions)
    : programs_(programs), assumptions_(assumptions) {
  std::size_t actions = 0;
  for (const Program& program : programs_) {
    base_.push_back(actions);
    actions += program.actions().size();
  }
  earlier_.resize(2 * actions);
  for (const Program& program : programs_) {
    add_lists(program);
    add_queues(program);
  }
  add_matches();
  add_meetings();
}

void Graph::add_lists(const Program& program) {
  const int rank = program.rank();
  const bool blocks = assumptions_.post == CommTraits::Post::blocking;
  Node reached = 0; // what the rank's host has finished; start() of the first action has nothing before it
  bool any = false;
  for (std::size_t at = 0; at < program.actions().size(); ++at) {
    const ProgramAction& action = program.actions()[at];
    after(end(rank, id_of(at)), start(rank, id_of(at)));
    if (any) after(start(rank, id_of(at)), reached);
    for (const ActionId waited : action.waits) after(start(rank, id_of(at)), end(rank, waited));
    if (is_transfer(action.kind) && !blocks) continue;
    reached = end(rank, id_of(at));
    any = true;
  }
}

void Graph::add_queues(const Program& program) {
  const bool serial = assumptions_.order == CommTraits::Order::serial;
  std::map<std::pair<int, bool>, ActionId> last; // by peer and direction
  for (std::size_t at = 0; at < program.actions().size(); ++at) {
    const ProgramAction& action = program.actions()[at];
    if (!is_transfer(action.kind)) continue;
    const auto queue = serial ? std::pair(-1, false) : std::pair(action.peer, sends(action.kind));
    const auto [entry, first] = last.try_emplace(queue, id_of(at));
    if (!first) after(start(program.rank(), id_of(at)), end(program.rank(), entry->second));
    entry->second = id_of(at);
  }
}

void Graph::add_matches() {
  using Key = std::tuple<Kind, int, int>; // of the send
  std::map<Key, Place> begun;
  const auto each = [this](auto visit) {
    for (const Program& program : programs_)
      for (std::size_t at = 0; at < program.actions().size(); ++at)
        visit(Place{program.rank(), id_of(at)}, program.actions()[at]);
  };
  each([&](const Place& place, const ProgramAction& action) {
    if (sends(action.kind)) begun[{action.kind, action.stage, action.microbatch}] = place;
  });
  each([&](const Place& place, const ProgramAction& action) {
    if (!receives(action.kind)) return;
    const Need& need = rule(action.kind).needs.front();
    const Place& send = begun.at({need.kind, stage_of(need, action.stage), action.microbatch});
    after(end(place.rank, place.action), start(send.rank, send.action));
    if (assumptions_.send == CommTraits::Send::rendezvous)
      after(end(send.rank, send.action), start(place.rank, place.action));
  });
}

void Graph::add_meetings() {
  std::map<Kind, std::vector<Place>> meetings;
  for (const Program& program : programs_)
    for (std::size_t at = 0; at < program.actions().size(); ++at)
      if (rule(program.actions()[at].kind).joins)
        meetings[program.actions()[at].kind].push_back({program.rank(), id_of(at)});
  for (const auto& [kind, places] : meetings)
    for (const Place& one : places)
      for (const Place& other : places) after(end(one.rank, one.action), start(other.rank, other.action));
}

Graph::Place Graph::place(Node node) const {
  const std::size_t action = node / 2;
  const auto rank = std::ranges::upper_bound(base_, action) - base_.begin() - 1;
  return {static_cast<int>(rank), id_of(action - base_[static_cast<std::size_t>(rank)])};
}

std::vector<Graph::Place> Graph::circle() const {
  // Take away whatever waits for nothing that is left.
  std::vector<std::vector<Node>> later(earlier_.size());
  std::vector<std::size_t> open(earlier_.size());
  std::vector<Node> free;
  for (Node node = 0; node < earlier_.size(); ++node) {
    open[node] = earlier_[node].size();
    if (open[node] == 0) free.push_back(node);
    for (const Node before : earlier_[node]) later[before].push_back(node);
  }
  while (!free.empty()) {
    const Node node = free.back();
    free.pop_back();
    for (const Node next : later[node])
      if (--open[next] == 0) free.push_back(next);
  }
  const auto stuck = std::ranges::find_if(open, [](std::size_t count) { return count > 0; });
  if (stuck == open.end()) return {};
  // From any node that is left, going back leads round a circle.
  std::vector<Node> path{static_cast<Node>(stuck - open.begin())};
  while (true) {
    const std::vector<Node>& before = earlier_[path.back()];
    const Node next = *std::ranges::find_if(before, [&](Node node) { return open[node] > 0; });
    const auto met = std::ranges::find(path, next);
    if (met == path.end()) {
      path.push_back(next);
      continue;
    }
    std::vector<Place> out;
    for (auto at = met; at != path.end(); ++at)
      if (out.empty() || !(out.back() == place(*at))) out.push_back(place(*at));
    if (out.size() > 1 && out.front() == out.back()) out.pop_back();
    return out;
  }
}

} // namespace triax::schedule
