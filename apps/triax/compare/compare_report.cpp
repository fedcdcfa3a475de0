// SPDX-License-Identifier: Apache-2.0
// The parts of the report that its forms share.
#include "compare/compare_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "common/printable_line.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using compare::Phases;

/// "1.04"
std::string ratio_text(double ratio) {
  return report::decimals_text(ratio, 3);
}

double median_of(const std::vector<compare::TurnResult>& turns, const std::function<double(const Phases&)>& part) {
  std::vector<double> values;
  values.reserve(turns.size());
  for (const compare::TurnResult& turn : turns) values.push_back(part(turn.phases));
  return compare::median(values);
}

} // namespace

std::vector<PartRow> part_rows(const compare::Compared& compared) {
  std::vector<PartRow> out = {
      {"step", compare::median(compared.a.steps_ms), compare::median(compared.b.steps_ms), compared.step_time}};
  if (!compared.a.has_phases || !compared.b.has_phases) return out;
  const auto add = [&](const std::string& name, const std::function<double(const Phases&)>& part) {
    const PartRow row{name, median_of(compared.a.turns, part), median_of(compared.b.turns, part),
                      ratio_of(compared, part)};
    if (row.a != 0 || row.b != 0) out.push_back(row);
  };
  add("recorded step", [](const Phases& of) { return of.step; });
  add("forward", [](const Phases& of) { return of.forward; });
  add("backward", [](const Phases& of) { return of.backward; });
  std::set<std::string> axes;
  for (const compare::SideResult* side : {&compared.a, &compared.b})
    for (const compare::TurnResult& turn : side->turns)
      for (const auto& [axis, waited] : turn.phases.exposed) axes.insert(axis);
  for (const std::string& axis : axes)
    add("exposed " + axis, [&axis](const Phases& of) {
      const auto found = of.exposed.find(axis);
      return found == of.exposed.end() ? 0 : found->second;
    });
  add("stage wait", [](const Phases& of) { return of.stage_wait; });
  add("optimizer", [](const Phases& of) { return of.optimizer; });
  add("other", [](const Phases& of) { return of.other; });
  return out;
}

std::string side_text(const LoadedSides& sides, bool is_a) {
  std::string out;
  const auto add = [&out](const std::string& one) { out += (out.empty() ? "" : ", ") + one; };
  for (const KeyDifference& of : main_differences(sides.differences, sides.given)) {
    const std::string& value = is_a ? of.a : of.b;
    add(value.empty() ? text("no {}", of.key) : text("{} = {}", of.key, value));
  }
  for (const VariableDifference& of : sides.variables) {
    const std::optional<std::string>& value = is_a ? of.a : of.b;
    add(value ? text("{}={}", of.name, *value) : text("{} not changed", of.name));
  }
  return out.empty() ? "no changes" : printable_line(out);
}

std::string verdict(const compare::Compared& compared) {
  const compare::Ratio& ratio = compared.step_time;
  const std::string interval =
      text("99 % interval {} to {}, {} rounds", ratio_text(ratio.low_99), ratio_text(ratio.high_99), ratio.rounds);
  if (ratio.is_significant)
    return text("B is {}: its step takes {} times as long as A's ({}).", ratio.value < 1 ? "faster" : "slower",
                ratio_text(ratio.value), interval);
  const std::optional<std::int64_t> rounds = compare::rounds_to_show(ratio, 0.01);
  const std::string more = rounds ? text("About {} rounds would show a difference of 1 % on this machine.", *rounds)
                                  : text("This machine is too noisy to show a difference of 1 %.");
  return text("No difference shown: a step of B takes {} times as long as one of A ({}). {}", ratio_text(ratio.value),
              interval, more);
}

std::string rounds_text(const ComparisonReport& report) {
  const std::int64_t rounds = std::ssize(report.compared.rounds), planned = report.plan.rounds;
  constexpr const char* kOrder = "rounds A B B A or B A A B";
  return rounds == planned ? text("{} {}", rounds, kOrder)
                           : text("{} of {} {}, then the comparison was stopped", rounds, planned, kOrder);
}

std::string agreement_text(const compare::Agreement& of) {
  if (!of.first_difference) return text("bit-equal in {} steps", of.steps);
  if (!std::isfinite(of.max_relative))
    return text("differ from step {} on; in step {} one of them is not finite", *of.first_difference, of.max_step);
  return text("differ from step {} on; largest difference: relative {} in step {}, {} ULP", *of.first_difference,
              of.max_relative, of.max_step, of.max_ulp);
}

} // namespace triax::app
