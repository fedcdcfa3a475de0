// SPDX-License-Identifier: Apache-2.0
#include "train/preflight_process.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"

namespace triax::train {

namespace {

using Json = nlohmann::json;

Json plan_json(const RankPlan& plan) {
  Json memory = Json::array();
  for (const MemoryRow& row : plan.memory) memory.push_back({row.what, row.bytes, row.is_on_host});
  Json activations = Json::array();
  for (const executor::ActivationPart& part : plan.activations)
    activations.push_back({part.what, part.layers, part.microbatches, part.bytes});
  Json traffic = Json::array();
  for (const std::vector<report::GroupTraffic>& of_rank : plan.traffic) {
    Json groups = Json::array();
    for (const report::GroupTraffic& of : of_rank)
      groups.push_back({of.group, of.plugin, of.ops, of.bytes_out, of.bytes_in});
    traffic.push_back(std::move(groups));
  }
  return {plan.ranks,
          plan.pipeline,
          plan.tensor,
          plan.layers,
          memory,
          activations,
          traffic,
          plan.offload_bytes,
          plan.host_traffic.to_host,
          plan.host_traffic.to_device};
}
RankPlan read_plan(const Json& json) {
  RankPlan plan;
  json.at(0).get_to(plan.ranks);
  json.at(1).get_to(plan.pipeline);
  json.at(2).get_to(plan.tensor);
  json.at(3).get_to(plan.layers);
  for (const Json& row : json.at(4)) plan.memory.push_back({row.at(0), row.at(1), row.at(2)});
  for (const Json& part : json.at(5)) plan.activations.push_back({part.at(0), part.at(1), part.at(2), part.at(3)});
  for (const Json& of_rank : json.at(6)) {
    plan.traffic.emplace_back();
    for (const Json& of : of_rank) plan.traffic.back().push_back({of.at(0), of.at(1), of.at(2), of.at(3), of.at(4)});
  }
  json.at(7).get_to(plan.offload_bytes);
  json.at(8).get_to(plan.host_traffic.to_host);
  json.at(9).get_to(plan.host_traffic.to_device);
  return plan;
}

Json corpus_json(const CorpusPlan& corpus) {
  return {corpus.path.string(), corpus.validation, corpus.share, corpus.tokens, corpus.epochs};
}
CorpusPlan read_corpus(const Json& json) {
  return {json.at(0).get<std::string>(), json.at(1), json.at(2), json.at(3), json.at(4)};
}

Json recomputation_json(const StageRecomputation& of) {
  Json blocks = Json::array();
  for (const StageRecomputation::Blocks& row : of.blocks) blocks.push_back({row.count, row.steps});
  return {of.stage, blocks, of.forward_fraction};
}
StageRecomputation read_recomputation(const Json& json) {
  StageRecomputation out{json.at(0), {}, json.at(2)};
  for (const Json& row : json.at(1)) out.blocks.push_back({row.at(0), row.at(1).get<std::vector<std::string>>()});
  return out;
}

Json balance_json(const Balance& balance) {
  Json stages = Json::array();
  for (const StagePlan& stage : balance.stages)
    stages.push_back({stage.pipeline, stage.layers, stage.parameters, stage.flops.forward, stage.flops.backward_input,
                      stage.flops.backward_weight, stage.early_flops});
  const auto& step = balance.step;
  return {{"stages", stages}, {"step", step ? Json{step->longer, step->bubble, step->even_bubble} : Json()}};
}
Balance read_balance(const Json& json) {
  Balance balance;
  for (const Json& stage : json.at("stages"))
    balance.stages.push_back(
        {stage.at(0), stage.at(1), stage.at(2), {stage.at(3), stage.at(4), stage.at(5)}, stage.at(6)});
  if (const Json& step = json.at("step"); !step.is_null())
    balance.step = StepEstimate{step.at(0), step.at(1), step.at(2)};
  return balance;
}

template <class Items, class ToJson>
Json list_json(const Items& items, ToJson to_json) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}
template <class Item, class Read>
void read_list(const Json& list, std::vector<Item>& items, Read read) {
  for (const Json& item : list) items.push_back(read(item));
}

std::string packed(const CheckedRun& checked) {
  const auto& [placement, preflight] = checked;
  const Json json = {{"placement", {placement.ranks, placement.cores, placement.ranks_are_threads}},
                     {"refusals", plugin::refusals_json(preflight.refusals)},
                     {"plans", list_json(preflight.plans, plan_json)},
                     {"corpora", list_json(preflight.corpora, corpus_json)},
                     {"parameters", preflight.parameters},
                     {"device", preflight.device ? Json(static_cast<int>(*preflight.device)) : Json()},
                     {"threads", preflight.threads},
                     {"resume", preflight.resume},
                     {"positions", preflight.positions},
                     {"recomputation", list_json(preflight.recomputation, recomputation_json)},
                     {"shares_accumulators", preflight.shares_accumulators},
                     {"saves_weights", preflight.saves_weights},
                     {"balance", balance_json(preflight.balance)}};
  return plugin::pack(json);
}

CheckedRun unpacked(const std::string& bytes) {
  const Json json = plugin::unpack(bytes);
  CheckedRun out;
  const Json& placement = json.at("placement");
  out.placement = {placement.at(0), placement.at(1), placement.at(2)};
  out.preflight.refusals = plugin::read_refusals(json.at("refusals"));
  read_list(json.at("plans"), out.preflight.plans, read_plan);
  read_list(json.at("corpora"), out.preflight.corpora, read_corpus);
  out.preflight.parameters = json.at("parameters");
  if (const Json& device = json.at("device"); !device.is_null())
    out.preflight.device = static_cast<DeviceKind>(device.get<int>());
  out.preflight.threads = json.at("threads");
  out.preflight.resume = json.at("resume").get<std::string>();
  out.preflight.positions = json.at("positions");
  read_list(json.at("recomputation"), out.preflight.recomputation, read_recomputation);
  out.preflight.shares_accumulators = json.at("shares_accumulators");
  out.preflight.saves_weights = json.at("saves_weights");
  out.preflight.balance = read_balance(json.at("balance"));
  return out;
}

Refusal refusal_of(const config::RunConfig& run, const plugin::ProbeFailure& failure) {
  const config::PluginChoice* choice = run.find_plugin(failure.plugin);
  const std::filesystem::path file = choice && choice->library ? choice->library->file : failure.file;
  const std::string at = file.empty() ? std::string() : text(", file {}", file);
  const std::string key = choice ? choice->named_in + ".plugin" : "";
  const std::string plugin = choice ? text("{} \"{}\"", key, failure.plugin) : failure.plugin;
  Refusal out = make_refusal(ErrorCode::kPluginFailed, {}, "{}: {}{}", plugin, failure.reason(), at);
  if (choice) out.keys.push_back(key);
  out.hint = failure.hint(file);
  return out;
}

/// "optimizer.plugin "optim-a": the dry run of rank 0 has not returned for 30 s; ..."
std::string slow_text(const config::RunConfig& run, const plugin::PluginCall& call, const plugin::CallLimits& limits) {
  using Seconds = std::chrono::duration<double>;
  const config::PluginChoice* choice = run.find_plugin(call.plugin);
  const std::string plugin = choice ? text("{}.plugin \"{}\": ", choice->named_in, choice->name) : std::string();
  return text("{}{} has not returned for {} s; the check waits up to {} s", plugin, call.what,
              Seconds(limits.notice).count(), Seconds(limits.slow_call).count());
}

} // namespace

ChildAnswer ask_in_child(const config::RunConfig& run, const std::function<std::string()>& body,
                         const plugin::CallLimits& limits, Log& log) {
  const auto slow = [&](const plugin::PluginCall& call) { log.warn("{}", slow_text(run, call, limits)); };
  const plugin::ProbeResult result = plugin::run_probe(
      [&body] {
        const plugin::CallScope all({}, "the check of the run", {}, plugin::CallKind::unlimited);
        return body();
      },
      plugin::ProbeOutput::inherited, limits, slow);
  if (!result.failure) return {result.output, {}};
  if (result.failure->plugin.empty())
    throw Error(text("{}, outside of all plugins", result.failure->reason()), {},
                result.failure->is_killed ? result.failure->hint({})
                                          : "this is a defect of Triax: report it with the run's TOML");
  return {{}, refusal_of(run, *result.failure)};
}

CheckedRun preflight_in_child(const config::RunConfig& run, Log& log, const PreflightRequest& request,
                              const plugin::CallLimits& limits) {
  const auto body = [&] {
    CheckedRun checked;
    checked.placement = request.placement ? *request.placement : choose_placement(run);
    checked.preflight = preflight(run, checked.placement, log, request.devices(checked.placement));
    return packed(checked);
  };
  const ChildAnswer answer = ask_in_child(run, body, limits, log);
  if (answer.refusals.empty()) return unpacked(answer.packed);
  CheckedRun out;
  out.placement = request.placement.value_or(Placement{});
  out.preflight.refusals.add(answer.refusals);
  return out;
}

} // namespace triax::train
