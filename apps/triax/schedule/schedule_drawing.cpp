// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule_drawing.hpp"

#include <algorithm>

#include "common/printable_line.hpp"
#include "config/option_value.hpp"
#include "draw/schedule_json.hpp"
#include "draw/schedule_svg.hpp"
#include "draw/schedule_table.hpp"
#include "draw/schedule_trace.hpp"
#include "os/terminal.hpp"
#include "plugin/option_text.hpp"
#include "report/units.hpp"
#include "schedule/timeline.hpp"

namespace triax::app {

namespace {

constexpr std::int64_t kMaxTableUnits = 1 << 24; // of all ranks together

schedule::Timeline timeline_of(const DrawingRequest& request, const ScheduleSource& source,
                               const VerifiedSchedule& verified) {
  const PassFlags units{{1, 1, 1, 1}};
  schedule::Costs costs = costs_of(request.passes.value_or(units), source.shape.stages());
  if (!request.passes) // a stage without R recomputes nothing
    for (const schedule::Program& program : verified.programs)
      for (const int stage : program.stages())
        if (!program.recomputes(stage)) costs.times[static_cast<std::size_t>(stage)].recompute_ms = 0;
  const schedule::Simulation simulation = schedule::simulate(verified.programs, costs);
  return schedule::planned(verified.programs, simulation, source.shape,
                           request.passes ? schedule::Timeline::Unit::ms : schedule::Timeline::Unit::pass);
}

/// How many units of time the passes of this schedule take.
std::string unit_text(const schedule::Timeline& timeline) {
  const auto any = [&timeline](auto is) {
    return std::ranges::any_of(timeline.rows, [&](const auto& row) { return std::ranges::any_of(row, is); });
  };
  const bool whole = any([](const schedule::Span& span) { return span.kind == schedule::Kind::backward; });
  const bool split = any([](const schedule::Span& span) {
    return span.kind == schedule::Kind::backward_input || span.kind == schedule::Kind::backward_weight;
  });
  const bool recomputes = any([](const schedule::Span& span) { return span.kind == schedule::Kind::recompute; });
  const std::string two = whole ? ", B two" : "";
  if (split) return text("F, {}I and W take one unit of time{}", recomputes ? "R, " : "", two);
  return recomputes ? "F and R take one unit of time" + two : "F takes one unit of time" + two;
}

/// The options that differ from their defaults.
std::string options_set(const config::PluginChoice& scheduler) {
  std::string out;
  if (!scheduler.library) return out; // a file has none
  for (const triax_option& option : scheduler.library->options) {
    if (!scheduler.options.has(option.name)) continue;
    const OptionValue& value = scheduler.options.value(option.name);
    if (option.default_value && config::read_default(option).value == value) continue;
    out += text(", {} = {}", option.name, plugin::to_toml(value));
  }
  return out;
}

ScheduleDrawing table_drawing(const std::string& title, const schedule::Timeline& timeline,
                              const DrawingRequest& request) {
  const double length = schedule::time_span(timeline).length();
  const auto ranks = static_cast<double>(timeline.rows.size());
  if (length * ranks > static_cast<double>(kMaxTableUnits))
    return {{},
            make_refusal(ErrorCode::kTooLarge, {}, "a table of {} ranks and {} units of time is too large to read",
                         ranks, length)
                .with_hint("use --format csv, or smaller sizes")};
  const draw::TableStyle style{
      request.colour, request.columns,
      text("folded to {} columns: --output FILE writes it whole; --format svg, json and trace are not folded",
           request.columns)};
  const std::string heading = text("{}; {}\n", title, unit_text(timeline));
  return {os::fold_words(heading, static_cast<std::size_t>(request.columns)) + draw::schedule_table(timeline, style),
          Refusals()};
}

ScheduleDrawing picture(const DrawingRequest& request, draw::Picture what) {
  const schedule::Timeline& timeline = what.panels.at(0).timeline;
  const schedule::TimeSpan time_span = schedule::time_span(timeline);
  what.note = text("{}; bubble / active time {} %; bubble / work {} %",
                   request.passes ? to_text(*request.passes) : unit_text(timeline),
                   report::decimals_text(100 * time_span.bubble_rate(), 1),
                   report::decimals_text(100 * time_span.bubble_over_work(), 1));
  return svg(what);
}

} // namespace

std::string name_and_shape(const ScheduleSource& source) {
  const PipelineShape& shape = source.shape;
  return printable_line(text("{}: p = {}, m = {}, v = {}{}", source.scheduler.name, shape.pipeline, shape.microbatches,
                             shape.chunks, options_set(source.scheduler)));
}

ScheduleDrawing svg(const draw::Picture& picture) {
  const Refusals support = draw::svg_support(picture);
  if (!support.empty()) {
    Refusal refusal = support.front();
    refusal.hint = "use --format json or trace, or smaller sizes";
    return {{}, refusal};
  }
  return {draw::schedule_svg(picture), Refusals()};
}

ScheduleDrawing draw(const DrawingRequest& request, const ScheduleSource& source, const VerifiedSchedule& verified) {
  const std::string title = name_and_shape(source);
  schedule::Timeline timeline = timeline_of(request, source, verified);
  if (request.format == "table") return table_drawing(title, timeline, request);
  if (request.format == "json") return {draw::schedule_json(source.scheduler.name, timeline), Refusals()};
  draw::Picture what{title, {}, {{{}, std::move(timeline)}}};
  if (request.format == "svg") return picture(request, std::move(what));
  return {draw::schedule_trace(what), Refusals()};
}

} // namespace triax::app
