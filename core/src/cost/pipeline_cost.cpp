// SPDX-License-Identifier: Apache-2.0
#include "cost/pipeline_cost.hpp"

#include <algorithm>
#include <array>

#include "cost/exchange_programs.hpp"
#include "schedule/graph.hpp"

namespace triax::cost {

namespace {

using schedule::Kind;
using schedule::Program;
using schedule::ProgramAction;

const LinkTime& link_of(const ProgramAction& action, const PipelineTimes& times) {
  return times
      .links[static_cast<std::size_t>(std::min(action.stage, action.stage + schedule::peer_offset(action.kind)))];
}

bool is_exchange(Kind kind) {
  return schedule::sends(kind) || schedule::receives(kind);
}

double pass_s(const ProgramAction& action, const PipelineTimes& times) {
  const StageTime& stage = times.stages[static_cast<std::size_t>(std::max(action.stage, 0))];
  switch (action.kind) {
    case Kind::forward:
      return stage.forward_s;
    case Kind::backward:
      return stage.backward_s;
    case Kind::backward_input:
    case Kind::backward_weight:
      return stage.backward_s / 2;
    case Kind::gather_f:
      return times.links[static_cast<std::size_t>(action.stage - 1)].gather_s;
    case Kind::gather_b:
      return times.links[static_cast<std::size_t>(action.stage)].gather_s;
    default:
      return 0;
  }
}

/// Length of each action. All members of a set take as long: the messages of the busier direction, one after another.
std::vector<double> lengths_of(const Program& program, const PipelineTimes& times) {
  const std::span<const ProgramAction> actions = program.actions();
  std::vector<double> out(actions.size());
  for (std::size_t at = 0; at < actions.size();) {
    if (!is_exchange(actions[at].kind)) {
      out[at] = pass_s(actions[at], times);
      ++at;
      continue;
    }
    std::array<double, 2> by_direction{};
    double latency = 0;
    std::size_t end = at;
    for (; end < actions.size() && is_exchange(actions[end].kind); ++end) {
      const LinkTime& link = link_of(actions[end], times);
      by_direction[schedule::sends(actions[end].kind) ? 1 : 0] += link.seconds;
      latency = std::max(latency, link.latency_s);
    }
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(at), out.begin() + static_cast<std::ptrdiff_t>(end),
              latency + std::max(by_direction[0], by_direction[1]));
    at = end;
  }
  return out;
}

/// Megatron-LM runs all forwards before the backwards if an interleaved step has p microbatches. Ranks that exchange
/// between pairs of passes would wait for each other. Lists of configurations have chunks with sched-interleaved only.
void put_forwards_first(Schedule& schedule) {
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    std::vector<Action>& row = schedule.row(rank);
    std::stable_partition(row.begin(), row.end(),
                          [](const Action& action) { return action.kind == ComputeKind::forward; });
  }
}

} // namespace

RankEnds simulate_pipeline(const MakeRows& rows, const PipelineShape& shape, schedule::Boundaries boundaries,
                           const PipelineTimes& times) {
  const bool is_flushed = shape.chunks > 1 && shape.microbatches <= shape.pipeline;
  const PassGroups groups = shape.chunks > 1 && !is_flushed ? PassGroups::pairs : PassGroups::passes;
  Schedule schedule = rows(shape);
  if (is_flushed) put_forwards_first(schedule);
  const std::vector<Program> programs = exchange_programs(schedule, boundaries, groups);
  std::vector<std::vector<double>> lengths;
  lengths.reserve(programs.size());
  for (const Program& program : programs) lengths.push_back(lengths_of(program, times));
  const schedule::Guarantee blocking{CommTraits::Order::channel, CommTraits::Send::rendezvous,
                                     CommTraits::Post::blocking};
  const auto ends =
      schedule::Graph(programs, schedule::everywhere(blocking)).times([&](std::size_t rank, std::size_t at) {
        const double length = lengths[rank][at];
        return schedule::Graph::Lengths{length, is_exchange(programs[rank].actions()[at].kind) ? length : 0};
      });
  RankEnds out;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    double& last = out.emplace_back();
    for (std::size_t at = 0; at < ends[rank].size(); ++at)
      if (schedule::runs_layers(programs[rank].actions()[at].kind) || is_exchange(programs[rank].actions()[at].kind))
        last = std::max(last, ends[rank][at].end);
  }
  return out;
}

RankEnds pipeline_ends(const MakeRows& rows, const PipelineShape& shape, schedule::Boundaries boundaries,
                       const PipelineTimes& times) {
  const int p = shape.pipeline, left = shape.microbatches / p - 4; // periods that are extrapolated
  if (left <= 0) return simulate_pipeline(rows, shape, boundaries, times);
  PipelineShape cut = shape;
  cut.microbatches -= left * p;
  RankEnds longer = simulate_pipeline(rows, cut, boundaries, times);
  cut.microbatches -= p;
  const RankEnds shorter = simulate_pipeline(rows, cut, boundaries, times);
  for (std::size_t rank = 0; rank < longer.size(); ++rank) longer[rank] += left * (longer[rank] - shorter[rank]);
  return longer;
}

} // namespace triax::cost
