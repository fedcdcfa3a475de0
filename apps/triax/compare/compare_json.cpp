// SPDX-License-Identifier: Apache-2.0
// The result of `triax compare` as one JSON object.
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/machine_text.hpp"
#include "common/ratio_json.hpp"
#include "compare/compare_report.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

Json optional_ratio(const std::optional<compare::Ratio>& ratio) {
  return ratio ? ratio_json(*ratio) : Json(nullptr);
}

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json agreement_json(const compare::Agreement& of) {
  return {{"steps", of.steps},
          {"bit_equal", !of.first_difference},
          {"first_difference", of.first_difference ? Json(*of.first_difference) : Json(nullptr)},
          {"max_relative", finite(of.max_relative)},
          {"max_relative_step", of.max_step},
          {"max_ulp", std::isfinite(of.max_relative) ? Json(of.max_ulp) : Json(nullptr)}};
}

Json phases_json(const compare::Phases& of) {
  return {{"forward_ms", of.forward},
          {"backward_ms", of.backward},
          {"exposed_ms", of.exposed},
          {"stage_wait_ms", of.stage_wait},
          {"optimizer_ms", of.optimizer},
          {"other_ms", of.other},
          {"step_ms", of.step}};
}

Json side_json(const ComparisonReport& report, bool is_a) {
  const compare::SideResult& of = is_a ? report.compared.a : report.compared.b;
  const LoadedSide& side = is_a ? report.sides.a : report.sides.b;
  Json out = {{"changes", side_text(report.sides, is_a)},
              {"step_ms", compare::median(of.steps_ms)},
              {"tokens_per_step", side.run().batch.global * of.tokens_per_sample},
              {"memory_bytes", of.memory_bytes},
              {"resident_bytes", of.resident_bytes}};
  out["turns"] = Json::array();
  for (const compare::TurnResult& turn : of.turns) {
    Json one = {{"step_ms", turn.step_ms}};
    if (of.has_phases) one["last_step"] = phases_json(turn.phases);
    out["turns"].push_back(std::move(one));
  }
  out["traffic"] = Json::array();
  for (const report::GroupTraffic& group : of.traffic)
    out["traffic"].push_back({{"axis", group.group},
                              {"plugin", group.plugin},
                              {"ops", group.ops},
                              {"bytes_out", group.bytes_out},
                              {"bytes_in", group.bytes_in}});
  out["plugins"] = Json::array();
  for (const compare::UsedPlugin& one : of.plugins)
    out["plugins"].push_back({{"role", one.of.role},
                              {"name", one.of.name},
                              {"version", one.of.version},
                              {"file", one.of.file},
                              {"xxh3", one.checksum}});
  return out;
}

Json variables_json(const std::vector<VariableDifference>& of) {
  const auto value = [](const std::optional<std::string>& one) { return one ? Json(*one) : Json(nullptr); };
  Json out = Json::array();
  for (const VariableDifference& one : of)
    out.push_back({{"name", one.name}, {"a", value(one.a)}, {"b", value(one.b)}});
  return out;
}

Json differences_json(const std::vector<KeyDifference>& of) {
  Json out = Json::array();
  for (const KeyDifference& one : of) out.push_back({{"key", one.key}, {"a", one.a}, {"b", one.b}});
  return out;
}

} // namespace

std::string comparison_json(const ComparisonReport& report) {
  const compare::Compared& of = report.compared;
  const std::optional<std::int64_t> rounds = compare::rounds_to_show(of.step_time, 0.01);
  Json out = {{"verdict", verdict(of)},
              {"step_time", ratio_json(of.step_time)},
              {"rounds_to_show_1_percent", rounds ? Json(*rounds) : Json(nullptr)},
              {"machine", machine_json(report.machine)},
              {"rounds", of.rounds.size()},
              {"planned_rounds", report.plan.rounds},
              {"measured_steps_per_turn", of.steps_per_turn},
              {"restarts", report.plan.restarts},
              {"differences", differences_json(report.sides.differences)},
              {"variables", variables_json(report.sides.variables)}};
  out["parts"] = Json::array();
  for (const PartRow& row : part_rows(of))
    out["parts"].push_back(
        {{"part", row.name}, {"a_ms", row.a}, {"b_ms", row.b}, {"ratio", optional_ratio(row.ratio)}});
  if (report.sides.models_differ) {
    out["losses"] = out["grad_norms"] = nullptr;
  } else {
    out["losses"] = agreement_json(of.losses);
    out["grad_norms"] = agreement_json(of.grad_norms);
  }
  out["a"] = side_json(report, true);
  out["b"] = side_json(report, false);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

} // namespace triax::app
