// SPDX-License-Identifier: Apache-2.0
#include "schedule/timeline.hpp"

#include <algorithm>
#include <cmath>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

void require_drawable(const Span& span, std::size_t rank, std::size_t at, const StageMap& stage_map) {
  TRIAX_REQUIRE(span.stage < stage_map.stages() && (span.stage >= 0 || rule(span.kind).scope == Scope::rank),
                "rank {}, action {}: stage {} does not exist", rank, at, span.stage);
  TRIAX_REQUIRE(std::isfinite(span.start) && std::isfinite(span.end) && span.end >= span.start,
                "rank {}, action {}, {}: it runs from {} to {}", rank, at,
                action_text(span.kind, span.stage, span.microbatch), span.start, span.end);
}

} // namespace

Timeline planned(std::span<const Program> programs, const Simulation& simulation, const PipelineShape& shape,
                 Timeline::Unit unit) {
  TRIAX_REQUIRE(!programs.empty() && programs.size() == simulation.actions.size(), "{} programs, times of {}",
                programs.size(), simulation.actions.size());
  Timeline out{shape, programs[0].stage_map(), unit, std::vector<std::vector<Span>>(programs.size())};
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const std::span<const ProgramAction> actions = programs[rank].actions();
    for (std::size_t at = 0; at < actions.size(); ++at) {
      if (!runs_layers(actions[at].kind)) continue;
      const Graph::Time& time = simulation.actions[rank][at];
      out.rows[rank].push_back({actions[at].kind, actions[at].stage, actions[at].microbatch, time.start, time.end});
    }
  }
  return out;
}

RankTimeSpan time_span(std::span<const Span> row) {
  RankTimeSpan out;
  for (const Span& span : row) {
    if (!runs_layers(span.kind)) continue;
    out.covers(span.start, span.end);
    out.work += span.length();
  }
  return out;
}

TimeSpan time_span(const Timeline& timeline) {
  TimeSpan out;
  for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank) {
    const std::vector<Span>& row = timeline.rows[rank];
    for (std::size_t at = 0; at < row.size(); ++at) {
      require_drawable(row[at], rank, at, timeline.stage_map);
      out.covers(row[at].start, row[at].end);
    }
    out.add(time_span(row));
  }
  return out;
}

std::vector<InFlight> in_flight(std::span<const Span> row) {
  std::vector<InFlight> out;
  InFlight now;
  const auto change = [&](double from, int whole, int weight) {
    now = {from, now.whole + whole, now.weight + weight};
    out.push_back(now);
  };
  for (const Span& span : row) {
    if (span.kind == Kind::forward) change(span.start, 1, 0);
    if (span.kind == Kind::backward) change(span.end, -1, 0);
    if (span.kind == Kind::backward_input) change(span.end, -1, 1);
    if (span.kind == Kind::backward_weight) change(span.end, 0, -1);
  }
  return out;
}

int peak_of(std::span<const InFlight> in_flight) {
  int peak = 0;
  for (const InFlight& now : in_flight) peak = std::max(peak, now.all());
  return peak;
}

} // namespace triax::schedule
