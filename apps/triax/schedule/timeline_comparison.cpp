// SPDX-License-Identifier: Apache-2.0
#include "schedule/timeline_comparison.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "common/table.hpp"
#include "draw/schedule_json.hpp"
#include "draw/schedule_trace.hpp"
#include "report/json.hpp"
#include "report/units.hpp"
#include "schedule/measured.hpp"
#include "schedule/measured_ranks.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

struct MeasuredStep {
  std::int64_t number = 0;
  MeasuredGroup group; // of rank 0
  schedule::Comparison comparison;
};

std::string bubbles(const schedule::Comparison& of) {
  return text("bubble {} measured, {} simulated", report::percent_text(schedule::time_span(of.measured).bubble_rate()),
              report::percent_text(schedule::time_span(of.simulated).bubble_rate()));
}

/// Empty if all ranks ran on one machine.
std::string clocks(const MeasuredStep& step) {
  if (!step.comparison.clocks_within) return {};
  std::string hosts;
  for (const report::Machine& machine : step.group.machines)
    hosts += (hosts.empty() ? "" : ", ") + printable(machine.host);
  return text("clocks of {} aligned by their transfers, to within {} ms", hosts,
              report::decimals_text(*step.comparison.clocks_within, 3));
}

/// A row per rank, below a heading.
std::vector<std::vector<std::string>> breakdown_of(const MeasuredStep& step) {
  const auto ms = [](double value) { return report::decimals_text(value, 2); };
  std::vector<std::vector<std::string>> out = {
      {"rank", "measured", "even", "slow stages", "slow passes", "late", "overhead"}};
  for (std::size_t at = 0; at < step.group.ranks.size(); ++at) {
    const schedule::StepBreakdown& of = step.comparison.ranks[at];
    out.push_back({triax::to_text(step.group.ranks[at]), ms(of.measured), ms(of.even), ms(of.slow_stages),
                   ms(of.slow_passes), ms(of.late), ms(of.overhead)});
  }
  return out;
}

std::string to_text(const MeasuredStep& step) {
  const auto ms = [](double value) { return report::decimals_text(value, 2); };
  const bool recomputes =
      std::ranges::any_of(step.comparison.times, [](const schedule::PassTimes& of) { return of.recompute_ms > 0; });
  std::vector<std::vector<std::string>> stages = {{"stage", "rank", "F", "B or I", "W"}};
  if (recomputes) stages.front().emplace_back("R");
  for (std::size_t stage = 0; stage < step.comparison.times.size(); ++stage) {
    const schedule::PassTimes& of = step.comparison.times[stage];
    const int rank = step.comparison.simulated.stage_map.rank_of(static_cast<int>(stage));
    stages.push_back({triax::to_text(stage), triax::to_text(step.group.ranks.at(static_cast<std::size_t>(rank))),
                      ms(of.forward_ms), ms(of.input_ms), ms(of.weight_ms)});
    if (recomputes) stages.back().push_back(ms(of.recompute_ms));
  }
  return text("step {}, ms: {}\n", step.number, bubbles(step.comparison)) + table(breakdown_of(step)) +
         "even: simulated with equal times for all stages; even and the columns after it add up to measured.\n"
         "slow stages: simulated with each stage's median times; slow passes: longer than the median of their stage;\n"
         "late: waits for transfers, minus the simulated bubble; overhead: neither pass nor wait\n" +
         table(stages);
}

std::string to_json(const MeasuredStep& step, const std::string& name) {
  std::vector<report::JsonObject> ranks;
  for (std::size_t at = 0; at < step.group.ranks.size(); ++at) {
    const schedule::StepBreakdown& of = step.comparison.ranks[at];
    ranks.emplace_back()
        .set("rank", step.group.ranks[at])
        .set("measured_ms", of.measured)
        .set("even_ms", of.even)
        .set("slow_stages_ms", of.slow_stages)
        .set("slow_passes_ms", of.slow_passes)
        .set("late_ms", of.late)
        .set("overhead_ms", of.overhead);
  }
  report::JsonObject head;
  head.set("step", step.number).set("ranks", std::move(ranks));
  if (step.comparison.clocks_within) head.set("clocks_within_ms", *step.comparison.clocks_within);
  std::string out = head.line();
  out.pop_back();
  return out + ",\n\"measured\":" + draw::schedule_json(name, step.comparison.measured) +
         ",\"simulated\":" + draw::schedule_json(name, step.comparison.simulated) + "}\n";
}

MeasuredStep read_step(const ScheduleSource& source, const VerifiedSchedule& verified) {
  MeasuredStep step{0, read_group(source, 0), {}};
  step.number = step.group.timelines.front().step;
  step.comparison = compare(step.group, source, verified);
  return step;
}

draw::Picture picture_of(const ScheduleSource& source, const MeasuredStep& step) {
  const std::string aligned = clocks(step);
  return {text("{}, step {}", name_and_shape(source), step.number),
          bubbles(step.comparison) + (aligned.empty() ? aligned : "; " + aligned),
          {{"measured", step.comparison.measured}, {"simulated", step.comparison.simulated}}};
}

} // namespace

MeasuredPicture measured_picture(const std::filesystem::path& run) {
  const ScheduleSource source = source_from_run(run.string(), {});
  const VerifiedSchedule verified = verify_schedule(source, {});
  if (!verified.problems.empty()) throw Error(verified.problems.front().text);
  const MeasuredStep step = read_step(source, verified);
  return {picture_of(source, step), breakdown_of(step)};
}

ScheduleDrawing draw_measured(const std::string& format, const ScheduleSource& source,
                              const VerifiedSchedule& verified) {
  const MeasuredStep step = read_step(source, verified);
  if (format == "table") return {to_text(step), Refusals()};
  if (format == "json") return {to_json(step, source.scheduler.name), Refusals()};
  const draw::Picture picture = picture_of(source, step);
  if (format == "trace") {
    const MeasuredRanks all = read_ranks(source, verified, step.group, step.comparison);
    return {draw::schedule_trace(picture, all.traces), Refusals()};
  }
  return svg(picture);
}

} // namespace triax::app
