// Verification of the programs of all ranks: what each does alone, what they do on their edges, and that nothing waits
// in a circle; all from the rule table.
#include <algorithm>
#include <map>
#include <utility>

#include "schedule/graph.hpp"
#include "schedule/verify_rank.hpp"

namespace triax::schedule {

namespace {

constexpr std::size_t kMostNamed = 12; // places of a circle

class ProgramsCheck {
 public:
  ProgramsCheck(std::span<const Program> programs, const Purpose& purpose, const Assumptions& assumptions)
      : programs_(programs), purpose_(purpose), assumptions_(assumptions) {}

  std::vector<Support> run() {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank)
      if (programs_[rank].rank() != static_cast<int>(rank))
        return {Support::no("program {} is that of rank {}", rank, programs_[rank].rank())};
    check_stage_maps();
    if (!refusals_.empty()) return std::move(refusals_);
    for (const Program& program : programs_)
      std::ranges::move(verify_rank(program, purpose_), std::back_inserter(refusals_));
    if (refusals_.empty()) check_edges();
    if (refusals_.empty()) check_circle();
    return std::move(refusals_);
  }

 private:
  std::string place(int rank, ActionId at) const {
    return text("rank {}, position {}, {}", rank, at, programs_[static_cast<std::size_t>(rank)].label(at));
  }

  void check_stage_maps() {
    if (static_cast<int>(programs_.size()) != purpose_.shape.pipeline)
      refusals_.push_back(
          Support::no("there are programs of {} ranks, and p = {}", programs_.size(), purpose_.shape.pipeline));
    for (const Program& program : programs_)
      if (program.stage_map() != programs_[0].stage_map() || program.stage_map().stages() != purpose_.shape.stages())
        refusals_.push_back(
            Support::no("rank {}: its program has other stages, or places them otherwise", program.rank()));
  }

  /// What is sent and received on a directed edge, in the order of its ends.
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
      refusals_.push_back(
          Support::no("{}: it is number {} from rank {} to rank {}, where {} receives: both ends of an edge keep "
                      "one order",
                      place(from, sent[k]), k, from, to, place(to, received[k])));
      return;
    }
    if (sent.size() > received.size())
      refusals_.push_back(Support::no("{}: rank {} does not receive it", place(from, sent[received.size()]), to));
    if (sent.size() < received.size())
      refusals_.push_back(Support::no("{}: rank {} does not send it", place(to, received[sent.size()]), from));
  }

  void check_circle() {
    const std::vector<Graph::Place> circle = Graph(programs_, assumptions_).circle();
    if (circle.empty()) return;
    std::string chain = place(circle[0].rank, circle[0].action);
    const std::size_t named = std::min(circle.size(), kMostNamed);
    for (std::size_t i = 1; i < named; ++i)
      chain += text("{} waits for {}", i == 1 ? ": it" : ", which", place(circle[i].rank, circle[i].action));
    if (named < circle.size()) chain += text(", and so on through {} more", circle.size() - named);
    chain += text("{} waits for the first", named == 1              ? ": it"
                                            : named < circle.size() ? ", the last of which"
                                                                    : ", which");
    refusals_.push_back(Support::no("{}; with transfers {}, {} sends and {} posts the ranks would wait for ever", chain,
                                    order_text(),
                                    assumptions_.send == CommTraits::Send::rendezvous ? "rendezvous" : "buffered",
                                    assumptions_.post == CommTraits::Post::blocking ? "blocking" : "nonblocking"));
  }
  const char* order_text() const {
    switch (assumptions_.order) {
      case CommTraits::Order::serial:
        return "in one queue per rank";
      case CommTraits::Order::channel:
        return "in one queue per edge";
      case CommTraits::Order::tagged:
        break;
    }
    return "in any order between edges";
  }

  std::span<const Program> programs_;
  const Purpose& purpose_;
  Assumptions assumptions_;
  std::vector<Support> refusals_;
};

} // namespace

Assumptions assume(std::span<const CommTraits> backends, std::size_t largest) {
  Assumptions out;
  for (const CommTraits& traits : backends) {
    out.order = std::min(out.order, traits.order); // from the strictest queues to the loosest
    if (traits.send == CommTraits::Send::rendezvous || traits.buffered_bytes < largest)
      out.send = CommTraits::Send::rendezvous;
    if (traits.post == CommTraits::Post::blocking) out.post = CommTraits::Post::blocking;
  }
  return out;
}

std::vector<Support> verify(std::span<const Program> programs, const Purpose& purpose, const Assumptions& assumptions) {
  return ProgramsCheck(programs, purpose, assumptions).run();
}

} // namespace triax::schedule
