#include "schedule/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "triax/error.hpp"

namespace triax::schedule {

namespace {

void require_drawable(const Span& span, std::size_t rank, std::size_t at, const StageMap& stage_map) {
  TRIAX_REQUIRE(span.stage < stage_map.stages() && (span.stage >= 0 || rule(span.kind).scope == Scope::rank),
                "rank {}, position {}: there is no stage {}", rank, at, span.stage);
  TRIAX_REQUIRE(std::isfinite(span.start) && std::isfinite(span.end) && span.end >= span.start,
                "rank {}, position {}, {}: it runs from {} to {}", rank, at,
                action_text(span.kind, span.stage, span.microbatch), span.start, span.end);
}

constexpr double kNever = std::numeric_limits<double>::max();

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

Extent extent(const Timeline& timeline) {
  Extent out;
  double first = kNever, last = -kNever;
  for (std::size_t rank = 0; rank < timeline.rows.size(); ++rank) {
    double begun = kNever, ended = -kNever, work = 0;
    const std::vector<Span>& row = timeline.rows[rank];
    for (std::size_t at = 0; at < row.size(); ++at) {
      require_drawable(row[at], rank, at, timeline.stage_map);
      first = std::min(first, row[at].start);
      last = std::max(last, row[at].end);
      if (!runs_layers(row[at].kind)) continue;
      begun = std::min(begun, row[at].start);
      ended = std::max(ended, row[at].end);
      work += row[at].length();
    }
    out.spans += static_cast<std::int64_t>(row.size());
    out.cost = std::max(out.cost, ended - begun);
    out.work = std::max(out.work, work);
  }
  if (out.spans > 0) out.first = first, out.last = last;
  out.cost = std::max(out.cost, out.work); // no rank is there for less than its work; sums round
  return out;
}

std::vector<Kept> kept(std::span<const Span> row) {
  std::vector<Kept> out;
  Kept now;
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

int peak_of(std::span<const Kept> kept) {
  int peak = 0;
  for (const Kept& now : kept) peak = std::max(peak, now.all());
  return peak;
}

} // namespace triax::schedule
