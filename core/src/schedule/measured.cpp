// SPDX-License-Identifier: Apache-2.0
#include "schedule/measured.hpp"

#include <algorithm>
#include <array>

#include "schedule/clock_alignment.hpp"
#include "triax/error.hpp"

namespace triax::schedule {

namespace {

constexpr const char* kAnotherRun = "use the TOML and the --set of the run that was trained, or train again";
constexpr std::size_t kPasses = 5; // F, B, I, W, R, in the order of Kind

/// 0 if there are no passes.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// For a stage with whole backwards only, the input gradient gets the time of the backward.
std::vector<PassTimes> median_times(const MeasuredRows& rows, int stages) {
  std::vector<std::array<std::vector<double>, kPasses>> lengths(static_cast<std::size_t>(stages));
  for (const auto& row : rows)
    for (const MeasuredPass& pass : row)
      lengths.at(static_cast<std::size_t>(pass.span.stage))
          .at(static_cast<std::size_t>(pass.span.kind))
          .push_back(pass.span.length());
  std::vector<PassTimes> out;
  for (const auto& of : lengths) {
    const double whole = median(of[1]), input = median(of[2]);
    out.push_back({median(of[0]), of[2].empty() ? whole : input, median(of[3]), median(of[4])});
  }
  return out;
}

std::vector<PassTimes> all_alike(std::span<const PassTimes> times) {
  PassTimes mean;
  const auto stages = static_cast<double>(times.size());
  for (const PassTimes& of : times) {
    mean.forward_ms += of.forward_ms / stages;
    mean.input_ms += of.input_ms / stages;
    mean.weight_ms += of.weight_ms / stages;
    mean.recompute_ms += of.recompute_ms / stages;
  }
  return std::vector<PassTimes>(times.size(), mean);
}

Timeline measured_timeline(const MeasuredRows& rows, const Timeline& simulated) {
  Timeline out{simulated.shape, simulated.stage_map, Timeline::Unit::ms, {}};
  for (std::size_t rank = 0; rank < simulated.rows.size(); ++rank) {
    if (rows[rank].size() != simulated.rows[rank].size())
      throw Error(text("pipeline rank {} ran {} passes, but its program has {}", rank, rows[rank].size(),
                       simulated.rows[rank].size()),
                  {}, kAnotherRun);
    std::vector<Span>& row = out.rows.emplace_back();
    for (const MeasuredPass& pass : rows[rank]) {
      const Span &ran = pass.span, &of = simulated.rows[rank][row.size()];
      if (ran.kind != of.kind || ran.stage != of.stage || ran.microbatch != of.microbatch)
        throw Error(
            text("pipeline rank {}, pass {}: {} ran, but its program has {}", rank, row.size(),
                 action_text(ran.kind, ran.stage, ran.microbatch), action_text(of.kind, of.stage, of.microbatch)),
            {}, kAnotherRun);
      row.push_back(ran);
    }
  }
  return out;
}

void shift(std::vector<Span>& row, double by) {
  for (Span& span : row) span.start += by, span.end += by;
}

StepBreakdown breakdown(std::span<const MeasuredPass> passes, const RankTimeSpan& measured,
                        const RankTimeSpan& simulated, const RankTimeSpan& even) {
  double waited = 0;
  for (std::size_t at = 1; at < passes.size(); ++at) waited += passes[at].waited_ms; // not before the first
  return {measured.length(),
          even.length(),
          simulated.length() - even.length(),
          measured.work - simulated.work,
          waited - simulated.idle(),
          measured.idle() - waited};
}

} // namespace

Comparison compare(std::span<const Program> programs, const MeasuredRows& rows, const PipelineShape& shape,
                   const std::vector<int>& clock_of) {
  for (const auto& row : rows)
    for (const MeasuredPass& pass : row)
      if (!runs_layers(pass.span.kind) || pass.span.stage < 0 || pass.span.stage >= shape.stages())
        throw Error(text("{} ran, which is not a pass of {} stages",
                         action_text(pass.span.kind, pass.span.stage, pass.span.microbatch), shape.stages()),
                    {}, kAnotherRun);
  TRIAX_REQUIRE(rows.size() == programs.size(), "passes of {} ranks, programs of {}", rows.size(), programs.size());
  Comparison out;
  out.times = median_times(rows, shape.stages());
  const auto simulate_with = [&](std::vector<PassTimes> times) {
    return planned(programs, simulate(programs, {std::move(times)}), shape, Timeline::Unit::ms);
  };
  out.simulated = simulate_with(out.times);
  out.measured = measured_timeline(rows, out.simulated);
  if (std::ranges::any_of(clock_of, [](int clock) { return clock > 0; })) {
    const Alignment aligned = align(out.measured, clock_of);
    for (std::size_t rank = 0; rank < rows.size(); ++rank) shift(out.measured.rows[rank], aligned.shift[rank]);
    out.clocks_within = aligned.within;
  }
  const double first = time_span(out.measured).first; // clocks of machines start at arbitrary times
  for (std::vector<Span>& row : out.measured.rows) shift(row, -first);
  const Timeline even = simulate_with(all_alike(out.times));
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    out.ranks.push_back(breakdown(rows[rank], time_span(out.measured.rows[rank]), time_span(out.simulated.rows[rank]),
                                  time_span(even.rows[rank])));
  return out;
}

} // namespace triax::schedule
