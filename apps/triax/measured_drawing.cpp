#include "measured_drawing.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "report/json.hpp"
#include "report/schedule_json.hpp"
#include "report/schedule_trace.hpp"
#include "report/timeline_file.hpp"
#include "report/units.hpp"
#include "schedule/measured.hpp"
#include "table.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

struct MeasuredStep {
  std::int64_t number = 0;
  std::vector<int> ranks;         // of the run, by pipeline rank
  std::vector<std::string> hosts; // of its machines
  schedule::Comparison comparison;
};

MeasuredStep read(const ScheduleSource& source, const ProvedSchedule& proved) {
  MeasuredStep out;
  out.ranks = source.layout.group(0, "pipeline").ranks;
  schedule::MeasuredRows rows;
  std::vector<report::Machine> machines;
  std::vector<int> clock_of;
  for (const int rank : out.ranks) {
    report::RankTimeline told = report::read_timeline(source.folder, rank);
    if (told.ranks != source.layout.world())
      throw Error(text("rank {} timed a run of {} ranks, and this one has {}", rank, told.ranks, source.layout.world()),
                  source.folder.string(), "give the TOML that the run was trained with, and its --set; or train again");
    if (rows.empty()) out.number = told.step;
    if (told.step != out.number)
      throw Error(text("rank {} timed step {}, and rank {} step {}", rank, told.step, out.ranks[0], out.number),
                  source.folder.string(), "train again with log.timeline");
    rows.push_back(std::move(told.passes));
    const auto machine = std::ranges::find(machines, told.machine);
    clock_of.push_back(static_cast<int>(machine - machines.begin()));
    if (machine != machines.end()) continue;
    out.hosts.push_back(told.machine.host);
    machines.push_back(std::move(told.machine));
  }
  try {
    out.comparison = schedule::compare(proved.programs, rows, source.shape, clock_of);
  } catch (const Error& error) {
    throw Error(error.message(), source.folder.string(), error.hint());
  }
  return out;
}

std::string percent(double part) {
  return report::decimals_text(100 * part, 1) + " %";
}

std::string bubbles(const schedule::Comparison& of) {
  return text("bubble {} measured, {} planned", percent(schedule::extent(of.measured).bubble_rate()),
              percent(schedule::extent(of.planned).bubble_rate()));
}

/// Empty where all ranks ran on one machine.
std::string clocks(const MeasuredStep& step) {
  if (!step.comparison.clocks_within) return {};
  std::string hosts;
  for (const std::string& host : step.hosts) hosts += (hosts.empty() ? "" : ", ") + printable(host);
  return text("clocks of {} aligned by their transfers, to within {} ms", hosts,
              report::decimals_text(*step.comparison.clocks_within, 3));
}

std::string to_words(const MeasuredStep& step) {
  const auto ms = [](double value) { return report::decimals_text(value, 2); };
  std::vector<std::vector<std::string>> ranks = {
      {"rank", "measured", "even", "slow stages", "slow passes", "late", "overhead"}};
  for (std::size_t at = 0; at < step.ranks.size(); ++at) {
    const schedule::Shortfall& of = step.comparison.ranks[at];
    ranks.push_back({to_text(step.ranks[at]), ms(of.measured), ms(of.even), ms(of.slow_stages), ms(of.slow_passes),
                     ms(of.late), ms(of.overhead)});
  }
  std::vector<std::vector<std::string>> stages = {{"stage", "rank", "F", "B or I", "W"}};
  for (std::size_t stage = 0; stage < step.comparison.times.size(); ++stage) {
    const schedule::PassTimes& of = step.comparison.times[stage];
    const int rank = step.comparison.planned.stage_map.rank_of(static_cast<int>(stage));
    stages.push_back({to_text(stage), to_text(step.ranks.at(static_cast<std::size_t>(rank))), ms(of.forward_ms),
                      ms(of.input_ms), ms(of.weight_ms)});
  }
  return text("step {}, ms: {}\n", step.number, bubbles(step.comparison)) + table(ranks) +
         "even: as simulated if all stages took the same; the columns after it add up to what was measured.\n"
         "slow stages: as simulated with each stage's own times; slow passes: longer than is usual on their stage;\n"
         "late: waits for transfers, beyond the bubble; overhead: neither pass nor wait\n" +
         table(stages);
}

std::string to_json(const MeasuredStep& step, const std::string& name) {
  std::vector<report::JsonObject> ranks;
  for (std::size_t at = 0; at < step.ranks.size(); ++at) {
    const schedule::Shortfall& of = step.comparison.ranks[at];
    ranks.emplace_back()
        .set("rank", step.ranks[at])
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
  return out + ",\n\"measured\":" + report::schedule_json(name, step.comparison.measured) +
         ",\"planned\":" + report::schedule_json(name, step.comparison.planned) + "}\n";
}

} // namespace

ScheduleDrawing draw_measured(const std::string& format, const ScheduleSource& source, const ProvedSchedule& proved) {
  const MeasuredStep step = read(source, proved);
  if (format == "table") return {to_words(step), Support::yes()};
  if (format == "json") return {to_json(step, source.scheduler.name), Support::yes()};
  const std::string aligned = clocks(step);
  const report::Picture picture{text("{}, step {}", name_and_shape(source), step.number),
                                bubbles(step.comparison) + (aligned.empty() ? aligned : "; " + aligned),
                                {{"measured", step.comparison.measured}, {"planned", step.comparison.planned}}};
  if (format == "trace") return {report::schedule_trace(picture), Support::yes()};
  return svg(picture);
}

} // namespace triax::app
