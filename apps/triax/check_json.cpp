#include <map>
#include <nlohmann/json.hpp>

#include "check_report.hpp"
#include "train_text.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

/// What plugin::to_toml writes is JSON, but for a few escapes.
Json value_json(const std::string& toml) {
  Json value = Json::parse(toml, nullptr, false);
  return value.is_discarded() ? Json(toml) : value;
}

/// One entry per rank, by number.
Json ranks_json(const std::vector<train::RankPlan>& plans) {
  std::map<int, Json> by_number;
  for (const train::RankPlan& plan : plans) {
    Json memory = Json::object();
    for (const train::MemoryRow& row : plan.memory) memory[row.what] = row.bytes;
    for (std::size_t data = 0; data < plan.ranks.size(); ++data) {
      by_number[plan.ranks[data]] = {{"rank", plan.ranks[data]}, {"pipeline", plan.pipeline}, {"data", data},
                                     {"tensor", plan.tensor},    {"layers", plan.layers},     {"memory_bytes", memory}};
    }
  }
  Json out = Json::array();
  for (auto& [number, rank] : by_number) out.push_back(std::move(rank));
  return out;
}

/// What ranks take of the cores is told where they compute on them.
Json placement_json(const train::Placement& placement, DeviceKind device) {
  Json out = {{"ranks", placement.ranks},
              {"as", placement.ranks_are_threads ? "threads" : "processes"},
              {"device", name_of(device)}};
  if (device == DeviceKind::host) out["threads_per_rank"] = placement.threads_per_rank();
  out["cores"] = placement.cores;
  return out;
}

Json corpora_json(const train::Preflight& preflight) {
  Json out = Json::array();
  for (const train::CorpusPlan& corpus : preflight.corpora) {
    out.push_back({{"path", corpus.path.string()},
                   {"for", corpus.validation ? "validation" : "training"},
                   {"share", corpus.share},
                   {"tokens", corpus.tokens},
                   {"epochs", corpus.epochs}});
  }
  return out;
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
  out["notes"] = report.loaded.run ? notes(*report.loaded.run) : std::vector<std::string>();
  if (report.loaded.run) out["placement"] = placement_json(report.placement, report.preflight.device);
  out["ranks"] = ranks_json(report.preflight.plans);
  out["corpora"] = corpora_json(report.preflight);
  out["parameters"] = report.preflight.parameters;
  return out.dump(2, ' ', false, Json::error_handler_t::replace); // paths may be no UTF-8
}

} // namespace triax::app
