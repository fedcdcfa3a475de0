// SPDX-License-Identifier: Apache-2.0
// The result of `triax compare` as one HTML page.
#include <algorithm>
#include <optional>

#include "common/machine_text.hpp"
#include "compare/compare_report.hpp"
#include "page/bar_chart.hpp"
#include "page/line_chart.hpp"
#include "page/page.hpp"
#include "page/paired_plot.hpp"
#include "page/step_timeline.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using page::Page;

constexpr std::size_t kStyleA = 0, kStyleB = 1; // colour, dashes and mark of a side

void add_figure(Page& page, const std::optional<page::Figure>& figure) {
  if (figure) page.figure(*figure);
}

void add_table(Page& page, TableRows rows, const std::string& caption) {
  if (rows.size() < 2) return;
  const std::vector<std::string> header = std::move(rows.front());
  rows.erase(rows.begin());
  page.table({header, std::move(rows), caption});
}

std::optional<page::Figure> ratio_figure(const compare::Compared& of) {
  page::PairedPlot plot{"Ratio of each round",
                        "Below 1, B is faster. The mean is that of the middle three fifths.",
                        {},
                        of.step_time.value,
                        of.step_time.low,
                        of.step_time.high};
  for (const compare::Round& round : of.rounds) plot.ratios.push_back(round.b / round.a);
  return page::paired_plot(plot);
}

/// Both sides in the order of their turns.
std::optional<page::Figure> turn_figure(const compare::Compared& of, const compare::Plan& plan) {
  using Form = page::Series::Form;
  page::LineChart chart{"Step time of each turn, in order of time", "turn", "ms", {}};
  chart.series = {{"A", {}, kStyleA, Form::marks_on_line}, {"B", {}, kStyleB, Form::marks_on_line}};
  std::size_t done[2] = {0, 0};
  double number = 0;
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    for (const std::size_t side : compare::turns_of_round(round)) {
      const std::vector<compare::TurnResult>& turns = (side == 0 ? of.a : of.b).turns;
      ++number;
      if (done[side] < turns.size()) chart.series[side].points.push_back({number, turns[done[side]++].step_ms});
    }
  }
  return page::line_chart(chart);
}

std::optional<page::Figure> part_figure(const compare::Compared& of) {
  page::BarChart chart{"Where the time of a step goes",
                       {"A", "B"},
                       {},
                       true,
                       [](double ms) { return ms_text(ms) + " ms"; },
                       true,
                       "Median over the turns, mean over the ranks."};
  for (const PartRow& row : part_rows(of))
    if (row.name != "step") chart.series.push_back({row.name, {row.a, row.b}, chart.series.size()});
  return page::bar_chart(chart);
}

std::optional<page::Figure> timeline_figure(const compare::Compared& of) {
  return page::step_timeline("The last step of each side", {{"A", of.a.timelines}, {"B", of.b.timelines}});
}

std::optional<page::Figure> value_figure(const compare::Compared& of, const char* title,
                                         double compare::SideStep::*value, bool is_log) {
  page::LineChart chart{title, "step", "", {}, is_log};
  for (const auto& [side, style] : {std::pair{&of.a, kStyleA}, {&of.b, kStyleB}}) {
    chart.series.push_back({style == kStyleA ? "A" : "B", {}, style});
    for (const compare::SideStep& step : side->steps)
      chart.series.back().points.push_back({static_cast<double>(step.step), step.*value});
  }
  return page::line_chart(chart);
}

std::optional<page::Figure> traffic_figure(const compare::Compared& of) {
  page::BarChart chart{"Bytes sent",
                       {},
                       {{"A", {}, kStyleA}, {"B", {}, kStyleB}},
                       false,
                       [](double bytes) { return report::bytes_text(static_cast<std::uint64_t>(bytes)); },
                       true,
                       kTrafficUnit};
  for (const compare::SideResult* side : {&of.a, &of.b})
    for (const report::GroupTraffic& group : side->traffic)
      if (std::ranges::find(chart.groups, group.group) == chart.groups.end()) chart.groups.push_back(group.group);
  for (page::BarSeries& series : chart.series) series.values.resize(chart.groups.size());
  for (const auto& [side, number] : {std::pair{&of.a, kStyleA}, {&of.b, kStyleB}})
    for (const report::GroupTraffic& group : side->traffic) {
      const auto at = std::ranges::find(chart.groups, group.group) - chart.groups.begin();
      chart.series[number].values[static_cast<std::size_t>(at)] += static_cast<double>(group.bytes_out);
    }
  return page::bar_chart(chart);
}

void add_times(Page& page, const ComparisonReport& report) {
  const compare::Compared& of = report.compared;
  page.section("Step time");
  add_figure(page, ratio_figure(of));
  add_figure(page, turn_figure(of, report.plan));
  page.pairs({{"A", spread_text(report, true)}, {"B", spread_text(report, false)}});
  page.section("Parts of a step");
  add_table(page, part_table(report), "");
  if (!of.a.has_phases || !of.b.has_phases) {
    page.note(kNoParts);
    return;
  }
  add_figure(page, part_figure(of));
  add_figure(page, timeline_figure(of));
}

void add_numbers(Page& page, const ComparisonReport& report) {
  page.section("Numbers");
  if (report.sides.models_differ) {
    page.note(kModelsDiffer);
  } else {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::vector<std::string>& row : number_table(report)) pairs.emplace_back(row[0], row[1]);
    page.pairs(pairs);
  }
  add_figure(page, value_figure(report.compared, "Loss", &compare::SideStep::loss, false));
  add_figure(page, value_figure(report.compared, "Gradient norm (log)", &compare::SideStep::grad_norm, true));
}

} // namespace

std::string comparison_html(const ComparisonReport& report) {
  const compare::Compared& of = report.compared;
  Page page("Comparison: " + report.sides.folder.filename().string(), machine_text(report.machine));
  page.result(verdict(of));
  page.pairs({{"A", side_text(report.sides, true)},
              {"B", side_text(report.sides, false)},
              {"order", text("{}; {} measured steps in each turn", rounds_text(report), of.steps_per_turn)}});
  add_times(page, report);
  add_numbers(page, report);
  if (const TableRows traffic = traffic_table(report); traffic.size() > 1) {
    page.section("Communication");
    add_figure(page, traffic_figure(of));
    add_table(page, traffic, "");
  }
  page.section("Memory and plugins");
  page.pairs({{"memory of A", memory_text(of.a)}, {"memory of B", memory_text(of.b)}});
  add_table(page, plugin_table(report), "");
  return page.html();
}

} // namespace triax::app
