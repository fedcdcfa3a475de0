// SPDX-License-Identifier: Apache-2.0
// The result of `triax report` as one JSON object.
#include <nlohmann/json.hpp>

#include "report/run_report.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

Json value_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json run_json(const ReportedRun& run) {
  const RunSummary of = summary_of(run);
  Json out = {{"run", run.name},
              {"state", state_text(run)},
              {"last_step", run.last_step()},
              {"steps", run.planned_steps()},
              {"records", run.records.size()},
              {"skipped", of.skipped},
              {"loss", value_or_null(of.loss)},
              {"eval_loss", value_or_null(of.eval_loss)},
              {"eval_step", of.eval_loss ? Json(of.eval_step) : Json(nullptr)},
              {"tokens_per_s", value_or_null(of.tokens_per_s)},
              {"step_ms", value_or_null(of.step_ms)},
              {"bubble_rate", value_or_null(of.bubble_rate)},
              {"memory_bytes", of.memory_bytes > 0 ? Json(of.memory_bytes) : Json(nullptr)},
              {"checkpoint", run.checkpoint ? Json(*run.checkpoint) : Json(nullptr)},
              {"failure", run.failure.empty() ? Json(nullptr) : Json(run.failure)}};
  out["comm"] = Json::object();
  for (const report::GroupTraffic& group : of.traffic)
    out["comm"][group.group] = {
        {"plugin", group.plugin}, {"ops", group.ops}, {"bytes_out", group.bytes_out}, {"bytes_in", group.bytes_in}};
  out["notes"] = run.notes;
  return out;
}

} // namespace

std::string report_json(const std::vector<ReportedRun>& runs) {
  Json out = {{"runs", Json::array()}, {"differences", Json::array()}};
  for (const ReportedRun& run : runs) out["runs"].push_back(run_json(run));
  const std::vector<std::vector<std::string>> rows = difference_rows(runs);
  for (std::size_t row = 1; row < rows.size(); ++row)
    out["differences"].push_back(
        {{"key", rows[row][0]}, {"values", std::vector<std::string>(rows[row].begin() + 1, rows[row].end())}});
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

} // namespace triax::app
