// SPDX-License-Identifier: Apache-2.0
// The rows of a comparison, which text and page share.
#include <algorithm>
#include <cmath>

#include "common/printable_line.hpp"
#include "compare/compare_report.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

std::string interval_text(const compare::Ratio& ratio) {
  return text("{} to {}", report::decimals_text(ratio.low, 3), report::decimals_text(ratio.high, 3));
}

std::vector<std::string> part_cells(const PartRow& row) {
  std::vector<std::string> out = {row.name, ms_text(row.a), ms_text(row.b), "-", "-"};
  if (!row.ratio) return out;
  out[3] = report::decimals_text(row.ratio->value, 3);
  out[4] = interval_text(*row.ratio);
  return out;
}

} // namespace

std::string ms_text(double ms) {
  return report::decimals_text(ms, ms < 10 ? 3 : ms < 1000 ? 2 : 0);
}

TableRows part_table(const ComparisonReport& report) {
  TableRows rows = {{"part", "A ms", "B ms", "B / A", "95 % interval"}};
  for (const PartRow& row : part_rows(report.compared)) rows.push_back(part_cells(row));
  return rows;
}

std::string spread_text(const ComparisonReport& report, bool is_a) {
  const compare::SideResult& side = is_a ? report.compared.a : report.compared.b;
  const config::RunConfig& run = (is_a ? report.sides.a : report.sides.b).run();
  const double step_ms = compare::median(side.steps_ms);
  const double tokens = static_cast<double>(run.batch.global * side.tokens_per_sample) / step_ms * 1e3;
  return text("{} tokens/s; {} measured steps, 5th percentile {} ms, 95th {} ms", report::count_text(tokens),
              side.steps_ms.size(), ms_text(compare::quantile(side.steps_ms, 0.05)),
              ms_text(compare::quantile(side.steps_ms, 0.95)));
}

std::string memory_text(const compare::SideResult& side) {
  return text("{} for the rank that needs most; {} resident in all processes", report::bytes_text(side.memory_bytes),
              report::bytes_text(side.resident_bytes));
}

TableRows traffic_table(const ComparisonReport& report) {
  TableRows rows = {{"side", "axis", "plugin", "calls", "sent"}};
  for (const bool is_a : {true, false})
    for (const report::GroupTraffic& of : (is_a ? report.compared.a : report.compared.b).traffic)
      rows.push_back({is_a ? "A" : "B", of.group, of.plugin, text("{}", of.ops), report::bytes_text(of.bytes_out)});
  return rows;
}

TableRows plugin_table(const ComparisonReport& report) {
  using compare::UsedPlugin;
  TableRows rows = {{"side", "role", "plugin", "version", "XXH3", "file"}};
  const auto differs = [](const UsedPlugin& one, const std::vector<UsedPlugin>& others) {
    return std::ranges::none_of(others, [&one](const UsedPlugin& other) {
      return one.of.role == other.of.role && one.of.file == other.of.file && one.checksum == other.checksum;
    });
  };
  const auto add = [&rows](const char* side, const UsedPlugin& one) {
    rows.push_back({side, one.of.role, one.of.name, printable_line(one.of.version), one.checksum.substr(0, 16),
                    printable_line(one.of.file)});
  };
  const std::vector<UsedPlugin>&a = report.compared.a.plugins, &b = report.compared.b.plugins;
  for (const UsedPlugin& one : a) add(differs(one, b) ? "A" : "A, B", one);
  for (const UsedPlugin& one : b)
    if (differs(one, a)) add("B", one);
  return rows;
}

TableRows number_table(const ComparisonReport& report) {
  if (report.sides.models_differ) return {};
  return {{"losses", agreement_text(report.compared.losses)},
          {"gradient norms", agreement_text(report.compared.grad_norms)}};
}

} // namespace triax::app
