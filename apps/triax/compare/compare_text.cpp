// SPDX-License-Identifier: Apache-2.0
// The result of `triax compare` as text.
#include "common/machine_text.hpp"
#include "common/printable_line.hpp"
#include "common/table.hpp"
#include "compare/compare_report.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

std::string numbers_text(const ComparisonReport& report) {
  std::string out;
  for (const std::vector<std::string>& row : number_table(report)) out += text("{}: {}\n", row[0], row[1]);
  return out.empty() ? std::string(kModelsDiffer) + '\n' : out;
}

} // namespace

std::string comparison_text(const ComparisonReport& report) {
  const compare::Compared& of = report.compared;
  std::string out =
      text("A: {}\nB: {}\n{}\n{}; measured steps in each turn: {}\n\n", side_text(report.sides, true),
           side_text(report.sides, false), machine_text(report.machine), rounds_text(report), of.steps_per_turn);
  if (of.steps_per_turn < of.steps_wanted)
    out += text("note: train.steps = {} allows {} measured steps per turn; --turn-ms {} needs {}\n",
                report.sides.a.run().train.steps, of.steps_per_turn, report.plan.turn_ms, of.steps_wanted);
  out += table(part_table(report)) + std::string(kRatioNote) + '\n';
  if (!of.a.has_phases || !of.b.has_phases) out += std::string(kNoParts) + '\n';
  out += '\n';
  for (const bool is_a : {true, false}) {
    const compare::SideResult& side = is_a ? of.a : of.b;
    out += text("{}: {}\n   memory: {}\n", is_a ? "A" : "B", spread_text(report, is_a), memory_text(side));
  }
  out += '\n' + numbers_text(report);
  if (const TableRows traffic = traffic_table(report); traffic.size() > 1)
    out += text("\n{}:\n", kTrafficUnit) + table(traffic);
  out += "\nplugins:\n" + table(plugin_table(report));
  out += text("\nin {}: compare.json, and the runs a and b\n{}\n", printable_line(report.sides.folder.string()),
              verdict(of));
  return out;
}

} // namespace triax::app
