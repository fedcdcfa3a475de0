// SPDX-License-Identifier: Apache-2.0
// Computes times from the graph, and the results of each rank.
#include "schedule/simulate.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

double duration(const Program& program, const ProgramAction& action, const Costs& costs) {
  const auto stage = static_cast<std::size_t>(action.stage); // not of actions of a rank
  const auto within = [&] { return program.recomputes(action.stage) ? 0 : costs.times[stage].recompute_ms; };
  switch (action.kind) {
    case Kind::forward:
      return costs.times[stage].forward_ms;
    case Kind::backward_input:
      return costs.times[stage].input_ms + within();
    case Kind::backward_weight:
      return costs.times[stage].weight_ms;
    case Kind::backward:
      return costs.times[stage].input_ms + costs.times[stage].weight_ms + within();
    case Kind::recompute:
      return costs.times[stage].recompute_ms;
    case Kind::reduce_grad:
      return costs.stages.empty() ? 0 : costs.stages[stage].reduce_ms;
    case Kind::opt_step:
      return costs.stages.empty() ? 0 : costs.stages[stage].optimizer_ms;
    case Kind::gather_param:
    case Kind::unshard:
      return costs.stages.empty() ? 0 : costs.stages[stage].gather_ms;
    default:
      return 0;
  }
}

/// The time of the link of a send, else 0.
double link(const ProgramAction& action, const Costs& costs) {
  if (!sends(action.kind) || costs.link_ms.empty()) return 0;
  return costs.link_ms[static_cast<std::size_t>(std::min(action.stage, action.stage + peer_offset(action.kind)))];
}

void check_sizes(const Costs& costs, std::size_t stages) {
  TRIAX_REQUIRE(costs.times.size() == stages, "{} stages, times of {}", stages, costs.times.size());
  TRIAX_REQUIRE(costs.link_ms.empty() || costs.link_ms.size() == stages - 1, "{} stages, {} link times", stages,
                costs.link_ms.size());
  TRIAX_REQUIRE(costs.stages.empty() || costs.stages.size() == stages,
                "{} stages, times of reductions, gathers and updates of {}", stages, costs.stages.size());
  TRIAX_REQUIRE(costs.bytes.empty() || costs.bytes.size() == stages, "{} stages, bytes of {}", stages,
                costs.bytes.size());
}

std::int64_t change(const ProgramAction& action, const PassBytes& of) {
  switch (action.kind) {
    case Kind::forward:
      return of.forward;
    case Kind::backward_input:
      return of.input;
    case Kind::backward_weight:
      return of.weight;
    case Kind::recompute:
      return 0;
    default:
      return of.input + of.weight;
  }
}

/// Active interval, work, microbatch chunks in flight and memory of one rank.
class RankTally {
 public:
  RankTally(const Program& program, const Costs& costs)
      : program_(program), costs_(costs), passes_(program.stages().size()) {}

  void run(const std::vector<Graph::Time>& times) {
    const std::span<const ProgramAction> actions = program_.actions();
    for (std::size_t at = 0; at < actions.size(); ++at) {
      if (!runs_layers(actions[at].kind)) continue;
      time_span.covers(times[at].start, times[at].end);
      count(actions[at]);
      if (!costs_.bytes.empty()) keep(at, actions[at]);
    }
    for (const int stage : program_.stages()) {
      const PassTimes& of = costs_.times[static_cast<std::size_t>(stage)];
      const Passes& passes = passes_of(stage);
      time_span.work += passes.forward * of.forward_ms + passes.input * (of.input_ms + of.recompute_ms) +
                        passes.weight * of.weight_ms; // products, because summing single times would round more
    }
  }

  RankTimeSpan time_span;
  int peak_in_flight = 0;
  std::int64_t peak_bytes = 0;
  std::optional<Graph::Entry> over_cap;

 private:
  void count(const ProgramAction& action) {
    Passes& of = passes_of(action.stage);
    of.forward += action.kind == Kind::forward;
    of.input += begins_backward(action.kind);
    of.weight += ends_backward(action.kind);
    in_flight_ += action.kind == Kind::forward;
    in_flight_ -= ends_backward(action.kind);
    peak_in_flight = std::max(peak_in_flight, in_flight_);
  }

  void keep(std::size_t at, const ProgramAction& action) {
    const std::int64_t more = change(action, costs_.bytes[static_cast<std::size_t>(action.stage)]);
    peak_bytes = std::max(peak_bytes, bytes_ + more);
    if (costs_.cap_bytes && bytes_ + more > *costs_.cap_bytes && !over_cap)
      over_cap = Graph::Entry{program_.rank(), static_cast<ActionId>(at)};
    bytes_ += more;
  }

  struct Passes {
    int forward = 0, input = 0, weight = 0;
  };

  Passes& passes_of(int stage) { return passes_[static_cast<std::size_t>(program_.stage_map().number_on_rank(stage))]; }

  const Program& program_;
  const Costs& costs_;
  std::vector<Passes> passes_; // by stage of the rank
  int in_flight_ = 0;
  std::int64_t bytes_ = 0;
};

} // namespace

Simulation simulate(std::span<const Program> programs, const Costs& costs) {
  TRIAX_REQUIRE(!programs.empty(), "there are no programs");
  check_sizes(costs, static_cast<std::size_t>(programs[0].stage_map().stages()));
  // Transfers wait only for their producers, and no action waits for a transfer to be received.
  const Assumptions free =
      schedule::everywhere({CommTraits::Order::tagged, CommTraits::Send::buffered, CommTraits::Post::nonblocking});
  Simulation out;
  out.actions = Graph(programs, free).times([&](std::size_t rank, std::size_t at) {
    const ProgramAction& action = programs[rank].actions()[at];
    return Graph::Lengths{duration(programs[rank], action, costs), link(action, costs)};
  });
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    for (const Graph::Time& time : out.actions[rank]) out.step_ms = std::max(out.step_ms, time.end);
    RankTally tally(programs[rank], costs);
    tally.run(out.actions[rank]);
    out.time_span.add(tally.time_span);
    out.peak_in_flight.push_back(tally.peak_in_flight);
    out.peak_bytes.push_back(tally.peak_bytes);
    if (!out.over_cap) out.over_cap = tally.over_cap;
  }
  return out;
}

} // namespace triax::schedule
