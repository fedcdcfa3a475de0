// SPDX-License-Identifier: Apache-2.0
#include "fit/fit_result.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/errors_json.hpp"
#include "common/table.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

const char* word(bool value) {
  return value ? "true" : "false";
}

/// "full", or "full, 4 blocks"; the number that needs least is "auto". A list has a value for each stage.
std::string recompute_text(const train::MemorySettings& settings) {
  std::string recompute =
      settings.recompute.is_list() ? to_toml(settings.recompute) : settings.recompute.values().front();
  if (!settings.recompute.any("full") || settings.layers.all(1)) return recompute;
  if (settings.layers.is_list()) return text("{}, {} blocks", recompute, to_toml(settings.layers));
  return text("{}, {}", recompute, settings.layers.all(0) ? "auto" : text("{} blocks", to_toml(settings.layers)));
}

std::string rows_text(const FitResult& result) {
  std::vector<std::vector<std::string>> rows = {
      {"parallel.sequence", "optimizer.shard", "memory.recompute", "batch.micro", "needs", "free", "bubble"}};
  for (const train::MemoryPlan& plan : result.search.plans) {
    const train::MemorySettings& of = plan.settings;
    rows.push_back({word(of.sequence), of.shard, recompute_text(of), text("{}", of.micro),
                    report::bytes_text(plan.bytes),
                    result.fits(plan) ? report::bytes_text(result.limit.bytes - plan.bytes) : "does not fit",
                    plan.bubble ? report::percent_text(*plan.bubble) : "-"});
  }
  return table(std::move(rows));
}

/// Rows that are missing because a plugin failed.
std::string left_out_text(const FitResult& result) {
  std::string out;
  for (const config::Diagnostic& of : result.left_out)
    out += text("left out, because a plugin failed: {}\n  {}\n", of.refusal.message, of.refusal.hint);
  return out.empty() ? out : out + '\n';
}

Json settings_json(const train::MemorySettings& settings) {
  return {{"parallel.sequence", settings.sequence},
          {"optimizer.shard", settings.shard},
          {"memory.recompute", Json::parse(to_toml(settings.recompute))},
          {"memory.recompute_layers", Json::parse(to_toml(settings.layers))},
          {"batch.micro", settings.micro}};
}

Json plan_json(const FitResult& result, const train::MemoryPlan& plan) {
  return {{"settings", settings_json(plan.settings)},
          {"bytes", plan.bytes},
          {"rank", plan.rank},
          {"fits", result.fits(plan)},
          {"mean_bubble", plan.bubble ? Json(*plan.bubble) : Json()}};
}

} // namespace

std::string to_text(const train::MemorySettings& settings) {
  const bool groups = settings.recompute.any("full") && !settings.layers.all(1);
  return text("parallel.sequence = {}, optimizer.shard = \"{}\", memory.recompute = {}{}, batch.micro = {}",
              word(settings.sequence), settings.shard, to_toml(settings.recompute),
              groups ? text(", memory.recompute_layers = {}", to_toml(settings.layers)) : "", settings.micro);
}

std::vector<FitChange> changes_of(const FitResult& result) {
  const train::MemorySettings &written = result.search.written.settings, &best = result.search.best->settings;
  std::vector<FitChange> out;
  if (best.sequence != written.sequence) {
    out.push_back({"parallel", "sequence", word(best.sequence)});
    if (result.search.scatter_gather) out.push_back({"parallel", "scatter_gather", "false"});
  }
  // Another setting may have another automatic split.
  const bool is_changed = best != written;
  if (is_changed && !result.split.empty()) out.push_back({"parallel", "split", result.split});
  if (best.shard != written.shard) out.push_back({"optimizer", "shard", text("\"{}\"", best.shard)});
  if (best.recompute != written.recompute) out.push_back({"memory", "recompute", to_toml(best.recompute)});
  if (best.recompute.any("full") && best.layers != written.layers)
    out.push_back({"memory", "recompute_layers", to_toml(best.layers)});
  if (best.micro != written.micro) out.push_back({"batch", "micro", text("{}", best.micro)});
  return out;
}

std::string to_text(const FitResult& result) {
  const train::MemoryPlan& written = result.search.written;
  std::string out = text("as written: {}; peak: rank {}, {}\n\n", to_text(written.settings), written.rank,
                         report::bytes_text(written.bytes));
  out += text(
             "the largest batch.micro in --memory {}; bubble: mean of the ranks, estimated from FLOPs without "
             "transfers\n",
             result.limit.written) +
         rows_text(result) + '\n' + left_out_text(result);
  const std::vector<FitChange> changes = changes_of(result);
  if (changes.empty()) return out + text("{} fits as it is written\n", result.file);
  const train::MemoryPlan& best = *result.search.best;
  out += text("to fit, set in {}; peak: rank {}, {}\n", result.file, best.rank, report::bytes_text(best.bytes));
  std::string table;
  for (const FitChange& change : changes) {
    if (change.table != table) out += text("\n[{}]\n", table = change.table);
    out += text("{} = {}\n", change.key, change.value);
  }
  return out;
}

std::string to_json(const FitResult& result) {
  Json plans = Json::array(), changes = Json::object();
  for (const train::MemoryPlan& plan : result.search.plans) plans.push_back(plan_json(result, plan));
  if (result.search.best)
    for (const FitChange& change : changes_of(result))
      changes[text("{}.{}", change.table, change.key)] = Json::parse(change.value);
  const bool is_planned = !result.search.plans.empty();
  Json out = {{"file", result.file}, {"memory_bytes", result.limit.bytes}};
  add_errors(out, result.refusals);
  out["written"] = is_planned ? plan_json(result, result.search.written) : Json();
  out["plans"] = std::move(plans);
  Json left_out = Json::object();
  add_errors(left_out, result.left_out);
  out["left_out"] = std::move(left_out["errors"]);
  out["changes"] = result.search.best ? std::move(changes) : Json();
  return out.dump(2, ' ', false, Json::error_handler_t::replace); // paths may be invalid UTF-8
}

} // namespace triax::app
