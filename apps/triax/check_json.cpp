#include <nlohmann/json.hpp>

#include "check_report.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

/// What plugin::to_toml writes is JSON, but for a few escapes.
Json value_json(const std::string& toml) {
  Json value = Json::parse(toml, nullptr, false);
  return value.is_discarded() ? Json(toml) : value;
}

Json rank_json(const train::RankPlan& rank) {
  Json memory = Json::object();
  for (const train::MemoryRow& row : rank.memory) memory[row.what] = row.bytes;
  return {{"rank", rank.rank},     {"pipeline", rank.pipeline}, {"data", rank.data},
          {"tensor", rank.tensor}, {"layers", rank.layers},     {"memory_bytes", memory}};
}

} // namespace

std::string to_json(const CheckReport& report) {
  Json out = {{"file", report.file}, {"accepted", report.refusals.empty()}};
  out["refusals"] = Json::array();
  for (const config::Refusal& refusal : report.refusals) out["refusals"].push_back(refusal.text);
  out["values"] = Json::object();
  for (const config::ResolvedValue& value : report.loaded.values) {
    out["values"][value.key] = {{"value", value_json(value.value)}, {"origin", value.origin}};
  }
  out["dropped"] = report.loaded.dropped;
  out["ranks"] = Json::array();
  for (const train::RankPlan& rank : report.preflight.ranks) out["ranks"].push_back(rank_json(rank));
  out["parameters"] = report.preflight.parameters;
  return out.dump(2, ' ', false, Json::error_handler_t::replace); // paths may be no UTF-8
}

} // namespace triax::app
