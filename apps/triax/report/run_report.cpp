// SPDX-License-Identifier: Apache-2.0
// The parts of the report that its forms share, and its text.
#include "report/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/printable_line.hpp"
#include "common/table.hpp"
#include "compare/paired_ratio.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// The median of the finite values; empty if there are none.
std::optional<double> median_of_finite(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {};
  return compare::median(values);
}

std::optional<double> median_of_field(const std::vector<report::StepRecord>& records,
                                      double report::StepRecord::*field) {
  std::vector<double> values;
  values.reserve(records.size());
  for (const report::StepRecord& record : records) values.push_back(record.*field);
  return median_of_finite(std::move(values));
}

std::uint64_t median_count(const std::vector<std::uint64_t>& values) {
  return static_cast<std::uint64_t>(compare::median(std::vector<double>(values.begin(), values.end())));
}

/// Axes in the order of their first record.
std::vector<report::GroupTraffic> median_traffic(const std::vector<report::StepRecord>& records) {
  struct Counts {
    std::vector<std::uint64_t> ops, out, in;
  };
  std::vector<report::GroupTraffic> out;
  std::map<std::string, Counts> counts;
  for (const report::StepRecord& record : records)
    for (const report::GroupTraffic& of : record.comm) {
      Counts& group = counts[of.group];
      if (group.ops.empty()) out.push_back(of);
      group.ops.push_back(of.ops);
      group.out.push_back(of.bytes_out);
      group.in.push_back(of.bytes_in);
    }
  for (report::GroupTraffic& group : out) {
    const Counts& of = counts[group.group];
    group.ops = median_count(of.ops);
    group.bytes_out = median_count(of.out);
    group.bytes_in = median_count(of.in);
  }
  return out;
}

std::string or_dash(const std::optional<double>& value, int decimals) {
  return value ? report::decimals_text(*value, decimals) : "-";
}

std::vector<std::string> axes_of_runs(const std::vector<RunSummary>& summaries) {
  std::vector<std::string> out;
  for (const RunSummary& summary : summaries)
    for (const report::GroupTraffic& of : summary.traffic)
      if (std::ranges::find(out, of.group) == out.end()) out.push_back(of.group);
  return out;
}

std::string bytes_of_axis(const RunSummary& summary, const std::string& axis) {
  const auto found = std::ranges::find(summary.traffic, axis, &report::GroupTraffic::group);
  return found == summary.traffic.end() ? "-" : report::bytes_text(found->bytes_out);
}

} // namespace

RunSummary summary_of(const ReportedRun& run) {
  RunSummary out;
  for (const report::StepRecord& record : run.records) {
    if (std::isfinite(record.loss)) out.loss = record.loss;
    if (record.eval_loss) out.eval_loss = record.eval_loss, out.eval_step = record.step;
    out.skipped += record.skipped ? 1 : 0;
  }
  out.tokens_per_s = median_of_field(run.records, &report::StepRecord::tokens_per_s);
  out.step_ms = median_of_field(run.records, &report::StepRecord::step_ms);
  out.bubble_rate = median_of_field(run.records, &report::StepRecord::bubble_rate);
  out.traffic = median_traffic(run.records);
  for (const train::MemoryRow& row : run.memory) out.memory_bytes += row.is_on_host ? 0 : row.bytes;
  return out;
}

std::string state_text(const ReportedRun& run) {
  if (run.is_running) return "in progress";
  if (!run.failure.empty()) return "failed";
  const std::int64_t planned = run.planned_steps();
  if (planned > 0 && run.last_step() >= planned) return "complete";
  return planned > 0 ? "not complete" : "unknown";
}

Rows result_rows(const std::vector<ReportedRun>& runs) {
  Rows out = {{"run", "state", "step", "of", "loss", "held-out", "checkpoint"}};
  for (const ReportedRun& run : runs) {
    const RunSummary of = summary_of(run);
    out.push_back({run.name, state_text(run), grouped(run.last_step()),
                   run.planned_steps() > 0 ? grouped(run.planned_steps()) : "-", or_dash(of.loss, 4),
                   or_dash(of.eval_loss, 4), run.checkpoint ? grouped(*run.checkpoint) : "-"});
  }
  return out;
}

Rows speed_rows(const std::vector<ReportedRun>& runs) {
  std::vector<RunSummary> summaries;
  summaries.reserve(runs.size());
  for (const ReportedRun& run : runs) summaries.push_back(summary_of(run));
  const std::vector<std::string> axes = axes_of_runs(summaries);
  Rows out = {{"run", "tokens/s", "step ms", "bubble"}};
  out[0].insert(out[0].end(), axes.begin(), axes.end());
  out[0].emplace_back("memory");
  for (std::size_t at = 0; at < runs.size(); ++at) {
    const RunSummary& of = summaries[at];
    out.push_back({runs[at].name, of.tokens_per_s ? report::count_text(*of.tokens_per_s) : "-", or_dash(of.step_ms, 2),
                   of.bubble_rate ? report::percent_text(*of.bubble_rate) : "-"});
    for (const std::string& axis : axes) out.back().push_back(bytes_of_axis(of, axis));
    out.back().push_back(of.memory_bytes > 0 ? report::bytes_text(of.memory_bytes) : "-");
  }
  return out;
}

Rows difference_rows(const std::vector<ReportedRun>& runs) {
  Rows out = {{"key"}};
  for (const ReportedRun& run : runs) out[0].push_back(run.name);
  std::set<std::string> done = {"run.dir", "log.metrics"};
  for (const ReportedRun& first : runs)
    for (const auto& [key, value] : first.keys) {
      if (!done.insert(key).second) continue;
      std::vector<std::string> row = {key};
      for (const ReportedRun& run : runs) row.push_back(run.keys.empty() ? "?" : run.value(key));
      for (std::string& cell : row)
        if (cell.empty()) cell = "-";
      const auto is_known = [](const std::string& cell) { return cell != "?"; };
      const auto known = std::find_if(row.begin() + 1, row.end(), is_known);
      const auto differs = [&](const std::string& cell) { return is_known(cell) && cell != *known; };
      if (known != row.end() && std::any_of(known, row.end(), differs)) out.push_back(std::move(row));
    }
  return out;
}

std::vector<std::string> note_lines(const std::vector<ReportedRun>& runs) {
  std::vector<std::string> out;
  for (const ReportedRun& run : runs) {
    if (!run.failure.empty()) out.push_back(text("{}: failed: {}", run.name, run.failure));
    for (const std::string& note : run.notes) out.push_back(text("{}: {}", run.name, note));
  }
  return out;
}

std::string report_text(const std::vector<ReportedRun>& runs) {
  std::string out = table(result_rows(runs)) + text("\n{}:\n", kMedians) + table(speed_rows(runs));
  if (runs.size() > 1) {
    const Rows differences = difference_rows(runs);
    out += differences.size() > 1 ? "\nkeys that differ:\n" + table(differences) : "\nno key differs\n";
  }
  std::string notes;
  for (const std::string& note : note_lines(runs)) notes += "note: " + printable_line(note) + '\n';
  return out + (notes.empty() ? "" : '\n' + notes);
}

} // namespace triax::app
