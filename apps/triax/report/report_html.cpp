// SPDX-License-Identifier: Apache-2.0
// The result of `triax report` as one HTML page.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "page/bar_chart.hpp"
#include "page/line_chart.hpp"
#include "page/page.hpp"
#include "page/schedule_figure.hpp"
#include "page/step_timeline.hpp"
#include "report/run_report.hpp"
#include "report/units.hpp"
#include "schedule/timeline_comparison.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using page::Page;
using report::StepRecord;
using Runs = std::vector<ReportedRun>;
using Form = page::Series::Form;

constexpr std::size_t kMaxKeyRows = 1000; // of a page

void add_figure(Page& to, const std::optional<page::Figure>& figure) {
  if (figure) to.figure(*figure);
}

void add_rows(Page& to, std::vector<std::vector<std::string>> rows, const std::string& caption) {
  const std::vector<std::string> header = std::move(rows.front());
  rows.erase(rows.begin());
  to.table({header, std::move(rows), caption});
}

/// The name of its folder, if that is unique. A single run needs no legend.
std::string series_name(const Runs& runs, std::size_t run) {
  if (runs.size() == 1) return "";
  const std::string folder = std::filesystem::path(runs[run].name).filename().string();
  const auto is_same = [&folder](const ReportedRun& of) { return std::filesystem::path(of.name).filename() == folder; };
  return folder.empty() || std::ranges::count_if(runs, is_same) > 1 ? runs[run].name : folder;
}

double value_of(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

template <class Value>
std::optional<page::Figure> over_steps(const Runs& runs, page::LineChart chart, const Value& value,
                                       bool is_scattered = true) {
  for (std::size_t run = 0; run < runs.size(); ++run) {
    page::Series series{series_name(runs, run), {}, run};
    for (const StepRecord& record : runs[run].records)
      series.points.push_back({static_cast<double>(record.step), value(record)});
    if (is_scattered) {
      page::add_scattered(chart, std::move(series));
    } else {
      chart.series.push_back(std::move(series));
    }
  }
  return page::line_chart(chart);
}

/// Records without an evaluation are not gaps.
std::optional<page::Figure> held_out_figure(const Runs& runs) {
  page::LineChart chart{"Held-out loss", "step", "nats per token", {}};
  for (std::size_t run = 0; run < runs.size(); ++run) {
    chart.series.push_back({series_name(runs, run), {}, run, Form::marks_on_line});
    for (const StepRecord& record : runs[run].records)
      if (record.eval_loss) chart.series.back().points.push_back({static_cast<double>(record.step), *record.eval_loss});
    if (chart.series.back().points.size() > 200) chart.series.back().form = Form::line;
  }
  return page::line_chart(chart);
}

double largest_of(const Runs& runs, double StepRecord::*field) {
  double out = 0;
  for (const ReportedRun& run : runs)
    for (const StepRecord& record : run.records)
      if (std::isfinite(record.*field)) out = std::max(out, record.*field);
  return out;
}

/// Whether the values differ by more than a chart with a linear axis shows.
bool needs_log(const Runs& runs, double StepRecord::*field) {
  const double largest = largest_of(runs, field);
  double least = largest;
  for (const ReportedRun& run : runs)
    for (const StepRecord& record : run.records)
      if (std::isfinite(record.*field) && record.*field > 0) least = std::min(least, record.*field);
  return largest > 30 * least;
}

bool is_scaled(const Runs& runs) {
  return std::ranges::any_of(runs, [](const ReportedRun& run) {
    return std::ranges::any_of(run.records, [](const StepRecord& record) { return record.loss_scale.has_value(); });
  });
}

void add_losses(Page& to, const Runs& runs) {
  to.section("Losses");
  page::LineChart loss{"Loss", "step", "nats per token", {}};
  loss.is_wide = true;
  const bool is_smoothed = std::ranges::any_of(runs, [](const ReportedRun& run) { return run.records.size() >= 300; });
  if (is_smoothed) loss.caption = "Faint: each step. Line: moving mean over 1 % of the steps before and after.";
  add_figure(to, over_steps(runs, loss, [](const StepRecord& of) { return of.loss; }));
  add_figure(to, held_out_figure(runs));
  const bool is_log = needs_log(runs, &StepRecord::grad_norm);
  add_figure(to, over_steps(runs, {is_log ? "Gradient norm (log)" : "Gradient norm", "step", "", {}, is_log},
                            [](const StepRecord& of) { return of.grad_norm; }));
  page::LineChart rate{"Learning rate", "step", "", {}};
  rate.from_zero = true;
  add_figure(to, over_steps(
                     runs, rate, [](const StepRecord& of) { return of.lr; }, false));
  if (is_scaled(runs))
    add_figure(to, over_steps(
                       runs, {"Loss scale (log)", "step", "", {}, true},
                       [](const StepRecord& of) { return value_of(of.loss_scale); }, false));
}

void add_speed(Page& to, const Runs& runs) {
  to.section("Speed");
  page::LineChart tokens{"Tokens per second", "step", "tokens/s", {}}, time{"Step time", "step", "ms", {}};
  const bool is_small = largest_of(runs, &StepRecord::model_tflops) < 1;
  page::LineChart bubble{"Bubble", "step", "% of the step", {}};
  page::LineChart flops{"Model FLOPs", "step", is_small ? "GFLOP/s" : "TFLOP/s", {}};
  for (page::LineChart* chart : {&tokens, &time, &bubble, &flops}) chart->from_zero = true;
  add_figure(to, over_steps(runs, tokens, [](const StepRecord& of) { return of.tokens_per_s; }));
  time.is_log = needs_log(runs, &StepRecord::step_ms);
  if (time.is_log) time.title += " (log)";
  add_figure(to, over_steps(runs, time, [](const StepRecord& of) { return of.step_ms; }));
  if (largest_of(runs, &StepRecord::bubble_rate) > 0)
    add_figure(to, over_steps(runs, bubble, [](const StepRecord& of) { return 100 * of.bubble_rate; }));
  add_figure(
      to, over_steps(runs, flops, [is_small](const StepRecord& of) { return of.model_tflops * (is_small ? 1e3 : 1); }));
}

std::optional<page::Figure> traffic_bars(const Runs& runs, const std::vector<RunSummary>& summaries) {
  page::BarChart chart{"Bytes sent in a step",
                       {},
                       {},
                       false,
                       [](double bytes) { return report::bytes_text(static_cast<std::uint64_t>(bytes)); },
                       false,
                       "Rank 0, median over the recorded steps."};
  for (const RunSummary& summary : summaries)
    for (const report::GroupTraffic& of : summary.traffic)
      if (std::ranges::find(chart.groups, of.group) == chart.groups.end()) chart.groups.push_back(of.group);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    chart.series.push_back({series_name(runs, run), std::vector<double>(chart.groups.size()), run});
    for (const report::GroupTraffic& of : summaries[run].traffic) {
      const auto at = std::ranges::find(chart.groups, of.group) - chart.groups.begin();
      chart.series.back().values[static_cast<std::size_t>(at)] = static_cast<double>(of.bytes_out);
    }
  }
  return page::bar_chart(chart);
}

std::optional<page::Figure> memory_bars(const Runs& runs) {
  page::BarChart chart{"Planned memory",
                       {},
                       {},
                       true,
                       [](double bytes) { return report::bytes_text(static_cast<std::uint64_t>(bytes)); },
                       false,
                       "Of rank 0."};
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (runs[run].memory.empty()) continue;
    chart.groups.push_back(runs.size() == 1 ? "rank 0" : series_name(runs, run));
    for (const train::MemoryRow& row : runs[run].memory) {
      const std::string name = heading_of(row);
      auto part = std::ranges::find(chart.series, name, &page::BarSeries::name);
      if (part == chart.series.end()) part = chart.series.insert(part, {name, {}, chart.series.size()});
      part->values.resize(chart.groups.size());
      part->values.back() += static_cast<double>(row.bytes);
    }
  }
  return page::bar_chart(chart);
}

void add_resources(Page& to, const Runs& runs) {
  std::vector<RunSummary> summaries;
  for (const ReportedRun& run : runs) summaries.push_back(summary_of(run));
  const std::optional<page::Figure> traffic = traffic_bars(runs, summaries), memory = memory_bars(runs);
  if (!traffic && !memory) return;
  to.section("Communication and memory");
  add_figure(to, traffic);
  add_figure(to, memory);
}

/// The measured step beside the simulated one. The scheduler of the run must be installed here.
void add_comparison(Page& to, const ReportedRun& run) {
  try {
    const MeasuredPicture of = measured_picture(run.folder / "resolved.toml");
    if (std::optional<page::Figure> figure = page::schedule_figure("Measured and simulated passes", of.picture)) {
      figure->caption = "Simulated with the measured times of the passes of each stage, and no time for transfers.";
      to.figure(*figure);
    }
    add_rows(to, of.breakdown, "Time of each rank in ms; the columns from even on add up to measured.");
  } catch (const Error& error) {
    to.note(text("{}: the simulated step cannot be shown: {}", run.name, error.what()));
  }
}

void add_timelines(Page& to, const Runs& runs) {
  if (std::ranges::all_of(runs, [](const ReportedRun& run) { return run.timelines.empty(); })) return;
  to.section("Timeline of a step");
  for (const ReportedRun& run : runs) {
    if (run.timelines.empty()) continue;
    const std::string title = text("{}step {}", runs.size() == 1 ? "" : run.name + ", ", run.timelines.front().step);
    const report::Machine& machine = run.timelines.front().machine;
    const bool is_one_clock =
        std::ranges::all_of(run.timelines, [&](const report::RankTimeline& of) { return of.machine == machine; });
    if (is_one_clock) add_figure(to, page::step_timeline("Measured: " + title, {{"", run.timelines}}));
    add_comparison(to, run);
  }
}

void add_configuration(Page& to, const Runs& runs) {
  if (runs.size() > 1) {
    to.section("Differences of the configurations");
    const std::vector<std::vector<std::string>> rows = difference_rows(runs);
    rows.size() > 1 ? add_rows(to, rows, "") : to.paragraph("No key differs.");
    return;
  }
  if (runs.front().keys.empty()) return;
  to.section("Configuration");
  std::vector<std::vector<std::string>> rows = {{"key", "value"}};
  for (const auto& [key, value] : runs.front().keys)
    if (rows.size() < kMaxKeyRows) rows.push_back({key, value});
  add_rows(to, rows, "");
}

} // namespace

std::string report_html(const Runs& runs) {
  constexpr std::size_t kMaxNamed = 4; // in the head of the page; the first table has all
  std::string names;
  for (const ReportedRun& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  Page to(runs.size() == 1 ? "Run " + names : text("Report of {} runs", runs.size()),
          runs.size() == 1 || runs.size() > kMaxNamed ? "" : names);
  for (const std::string& note : note_lines(runs)) to.note(note);
  to.section("Summary");
  add_rows(to, result_rows(runs), "");
  add_rows(to, speed_rows(runs), kMedians);
  if (std::ranges::any_of(runs, [](const ReportedRun& run) { return !run.records.empty(); })) {
    add_losses(to, runs);
    add_speed(to, runs);
  }
  add_resources(to, runs);
  add_timelines(to, runs);
  add_configuration(to, runs);
  return to.html();
}

} // namespace triax::app
