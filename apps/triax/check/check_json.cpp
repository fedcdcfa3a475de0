// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "check/check_report.hpp"
#include "common/errors_json.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

/// The output of plugin::to_toml() is JSON, except for a few escapes.
Json value_json(const std::string& toml) {
  Json value = Json::parse(toml, nullptr, false);
  return value.is_discarded() ? Json(toml) : value;
}

/// Communication of a training step, as in metrics.jsonl.
Json comm_json(const std::vector<report::GroupTraffic>& traffic) {
  Json out = Json::object();
  for (const report::GroupTraffic& of : traffic)
    out[of.group] = {{"plugin", of.plugin}, {"ops", of.ops}, {"bytes_out", of.bytes_out}, {"bytes_in", of.bytes_in}};
  return out;
}

/// One entry per rank, by number.
Json ranks_json(const std::vector<train::RankPlan>& plans) {
  std::map<int, Json> by_number;
  for (const train::RankPlan& plan : plans) {
    Json memory = Json::object(), host = Json::object();
    for (const train::MemoryRow& row : plan.memory) (row.is_on_host ? host : memory)[row.what] = row.bytes;
    Json activations = Json::array();
    for (const executor::ActivationPart& part : plan.activations)
      activations.push_back(
          {{"what", part.what}, {"layers", part.layers}, {"microbatches", part.microbatches}, {"bytes", part.bytes}});
    for (std::size_t data = 0; data < plan.ranks.size(); ++data) {
      by_number[plan.ranks[data]] = {{"rank", plan.ranks[data]},
                                     {"pipeline", plan.pipeline},
                                     {"data", data},
                                     {"tensor", plan.tensor},
                                     {"layers", plan.layers},
                                     {"memory_bytes", memory},
                                     {"activations", activations},
                                     {"comm", comm_json(plan.traffic.at(data))}};
      if (!host.empty()) by_number[plan.ranks[data]]["host_memory_bytes"] = host;
      if (plan.host_traffic.to_host > 0)
        by_number[plan.ranks[data]]["host_traffic"] = {{"bytes_to_host", plan.host_traffic.to_host},
                                                       {"bytes_to_device", plan.host_traffic.to_device}};
      if (plan.offload_bytes > 0) by_number[plan.ranks[data]]["offload_file_bytes"] = plan.offload_bytes;
    }
  }
  Json out = Json::array();
  for (auto& [number, rank] : by_number) out.push_back(std::move(rank));
  return out;
}

std::string_view device_word(DeviceKind kind) {
  return kind == DeviceKind::cuda ? "cuda" : name_of(kind);
}

/// CPU threads per rank are only included if the ranks compute on the host.
Json placement_json(const train::Placement& placement, const train::Preflight& preflight) {
  Json out = {{"ranks", placement.ranks},
              {"as", placement.ranks_are_threads ? "threads" : "processes"},
              {"device", preflight.device ? Json(device_word(*preflight.device)) : Json()}};
  if (preflight.device == DeviceKind::host) out["threads_per_rank"] = preflight.threads;
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

/// "fits" is null without --memory.
Json memory_json(const CheckReport& report) {
  if (report.preflight.plans.empty()) return nullptr;
  const train::RankPlan& most = largest_plan(report.preflight);
  Json out = {{"largest_rank", most.ranks.front()}, {"bytes", most.bytes()}};
  out["limit_bytes"] = report.limit ? Json(report.limit->bytes) : Json();
  out["fits"] = report.limit ? Json(most.bytes() <= report.limit->bytes) : Json();
  return out;
}

/// One entry per stage with memory.recompute = "optimal".
Json recomputation_json(const train::Preflight& preflight) {
  Json out = Json::array();
  for (const train::StageRecomputation& of : preflight.recomputation) {
    Json blocks = Json::array();
    for (const train::StageRecomputation::Blocks& row : of.blocks)
      blocks.push_back({{"count", row.count}, {"recomputed_steps", row.steps}});
    out.push_back({{"stage", of.stage}, {"blocks", std::move(blocks)}, {"forward_fraction", of.forward_fraction}});
  }
  return out;
}

Json balance_json(const train::Balance& balance, const std::optional<config::SplitExcess>& excess) {
  Json stages = Json::array();
  for (const train::StagePlan& stage : balance.stages)
    stages.push_back({{"pipeline", stage.pipeline},
                      {"layers", stage.layers},
                      {"parameters", stage.parameters},
                      {"forward_flops", stage.flops.forward},
                      {"input_flops", stage.flops.backward_input},
                      {"weight_flops", stage.flops.backward_weight}});
  Json out = {{"stages", std::move(stages)}};
  out["automatic_split"] =
      excess ? Json{{"slowest_above_mean", excess->automatic}, {"slowest_above_mean_if_even", excess->even}} : Json();
  out["longer_than_even"] = balance.step ? Json(balance.step->longer) : Json();
  out["mean_bubble"] = balance.step ? Json(balance.step->bubble) : Json();
  out["mean_bubble_if_even"] = balance.step ? Json(balance.step->even_bubble) : Json();
  return out;
}

} // namespace

std::string to_json(const CheckReport& report) {
  Json out = {{"file", report.file}, {"accepted", report.refusals.empty()}};
  add_errors(out, report.refusals);
  out["values"] = Json::object();
  for (const config::ResolvedValue& value : report.loaded.values) {
    out["values"][value.key] = {{"value", value_json(value.value)}, {"origin", value.origin}};
  }
  out["dropped"] = report.loaded.dropped;
  out["not_checked"] = report.loaded.unchecked;
  out["notes"] = notes(report);
  if (report.loaded.run) out["placement"] = placement_json(report.placement, report.preflight);
  out["ranks"] = ranks_json(report.preflight.plans);
  out["memory"] = memory_json(report);
  out["balance"] =
      balance_json(report.preflight.balance, report.loaded.run ? report.loaded.run->parallel.excess : std::nullopt);
  out["recomputation"] = recomputation_json(report.preflight);
  out["corpora"] = corpora_json(report.preflight);
  out["parameters"] = report.preflight.parameters;
  out["resume"] = report.preflight.resume.empty() ? Json() : Json(report.preflight.resume);
  return out.dump(2, ' ', false, Json::error_handler_t::replace); // paths may be invalid UTF-8
}

} // namespace triax::app
