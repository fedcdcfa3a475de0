// SPDX-License-Identifier: Apache-2.0
#include "plan/search_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/table.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;
using plan::RankedPlan;

constexpr double kSecondsPerDay = 86400;

/// The parts of a step, in the order in which they are printed.
struct Part {
  const char* name;
  double PlanTime::*seconds;
};
constexpr Part kParts[] = {{"compute", &PlanTime::compute},     {"imbalance", &PlanTime::imbalance},
                           {"bubble", &PlanTime::bubble},       {"tensor", &PlanTime::tensor},
                           {"pipeline", &PlanTime::pipeline},   {"data", &PlanTime::data},
                           {"optimizer", &PlanTime::optimizer}, {"fixed", &PlanTime::fixed}};

std::string number_text(double number, const char* format) {
  char out[64];
  std::snprintf(out, sizeof out, format, number);
  return out;
}
std::string seconds_text(double seconds) {
  return number_text(seconds, "%.4g s");
}

/// Numbers of a plan that follow from its step time.
struct Speed {
  double tokens_per_s = 0;
  std::optional<double> days;
};
Speed speed_of(const SearchReport& report, const RankedPlan& plan) {
  Speed out;
  out.tokens_per_s = report.request.tokens_per_step / plan.evaluation.time.step();
  if (report.arguments.tokens) out.days = *report.arguments.tokens / out.tokens_per_s / kSecondsPerDay;
  return out;
}

std::string plans_table(const SearchReport& report) {
  std::vector<std::vector<std::string>> rows = {{"plan", "step", "tokens/s", "memory", "p", "t", "d", "v", "b",
                                                 "schedule", "recompute", "sequence", "shard", "split"}};
  if (report.arguments.tokens) rows.front().insert(rows.front().begin() + 3, "days");
  int number = 0;
  for (const RankedPlan& of : report.result.plans) {
    const TrainingPlan& plan = of.plan;
    const Speed speed = speed_of(report, of);
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        text("{}", ++number), seconds_text(of.evaluation.time.step()), report::count_text(speed.tokens_per_s)});
    if (speed.days) row.push_back(number_text(*speed.days, "%.4g"));
    const PlanSpace& space = report.request.space;
    for (std::string& more :
         std::vector<std::string>{report::bytes_text(of.evaluation.bytes), text("{}", plan.pipeline),
                                  text("{}", plan.tensor), text("{}", plan.data), text("{}", plan.chunks),
                                  text("{}", plan.micro), space.schedules[static_cast<std::size_t>(plan.schedule)],
                                  std::string(name_of(plan.recompute)), plan.sequence ? "true" : "false",
                                  space.shards[static_cast<std::size_t>(plan.shard)], plan.balanced ? "auto" : "even"})
      row.push_back(std::move(more));
  }
  return table(std::move(rows));
}

std::string parts_table(const SearchReport& report) {
  std::vector<std::vector<std::string>> rows = {{"plan", "step"}};
  for (const Part& part : kParts) rows.front().emplace_back(part.name);
  int number = 0;
  for (const RankedPlan& of : report.result.plans) {
    const double step = of.evaluation.time.step();
    std::vector<std::string>& row =
        rows.emplace_back(std::vector<std::string>{text("{}", ++number), seconds_text(step)});
    for (const Part& part : kParts) row.push_back(report::percent_text(of.evaluation.time.*part.seconds / step));
  }
  return table(std::move(rows));
}

/// The names of the links, by LinkKind.
std::array<std::string, plan::kLinkKinds> link_names(const SearchReport& report) {
  const cost::NodeCosts& node = report.request.cluster.node;
  return {node.link, node.network};
}

/// Empty for a plan of one rank.
std::string link_table(const SearchReport& report) {
  if (report.traffic.empty()) return {};
  std::vector<std::vector<std::string>> rows = {{"axis"}};
  for (const std::string& name : link_names(report)) {
    rows.front().push_back(text("largest rank, {}", name));
    rows.front().push_back(text("all ranks, {}", name));
  }
  for (const plan::AxisTraffic& of : report.traffic) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{of.axis});
    for (const plan::SentBytes& bytes : of.by_link) {
      row.push_back(report::bytes_text(bytes.most));
      row.push_back(report::bytes_text(bytes.all));
    }
  }
  return "\nbytes that the ranks of the first plan send in a step\n" + table(std::move(rows));
}

Json sent_json(const plan::SentBytes& bytes) {
  return {{"rank_bytes", bytes.most}, {"bytes", bytes.all}};
}

/// By axis, then by the name of the link.
Json links_json(const SearchReport& report) {
  Json out = Json::object();
  for (const plan::AxisTraffic& of : report.traffic) {
    Json links = Json::array();
    for (std::size_t kind = 0; kind < plan::kLinkKinds; ++kind) {
      links.push_back({{"link", link_names(report)[kind]}, {"kind", kind == 0 ? "node" : "network"}});
      links.back().update(sent_json(of.by_link[kind]));
    }
    out[of.axis] = sent_json(of.sent);
    out[of.axis]["links"] = std::move(links);
  }
  return out;
}

/// The part of a step that differs most between two plans, as a reason.
std::string reason(const PlanTime& best, const PlanTime& other) {
  const Part* most = &kParts[0];
  for (const Part& part : kParts)
    if (other.*part.seconds - best.*part.seconds > other.*most->seconds - best.*most->seconds) most = &part;
  const double more = other.*most->seconds - best.*most->seconds;
  return more > 0 ? text("{} takes {} more", most->name, seconds_text(more)) : std::string("no part takes more");
}

/// "parallel.tensor = 4, parallel.data = 1": the settings that `plan` has and `best` has not.
std::string changed_settings(const plan::SearchRequest& request, const RankedPlan& best, const RankedPlan& plan) {
  const std::vector<plan::PlanKey> before = plan::keys_of(request, best.plan, best.split);
  std::string out;
  for (const plan::PlanKey& of : plan::keys_of(request, plan.plan, plan.split)) {
    const auto is_same = [&of](const plan::PlanKey& other) {
      return other.table == of.table && other.key == of.key && other.value == of.value;
    };
    if (std::ranges::none_of(before, is_same))
      out += text("{}{}.{} = {}", out.empty() ? "" : ", ", of.table, of.key, of.value);
  }
  return out;
}

std::string explanation(const SearchReport& report) {
  const RankedPlan& best = report.result.plans.front();
  std::string out = "\nthe best plan with another value of a setting\n";
  for (const plan::Alternative& of : report.alternatives) {
    if (!of.best) {
      out += text("  {}: {} finds no plan with another value\n", of.setting, report.planner);
      continue;
    }
    const PlanTime& time = of.best->evaluation.time;
    const double longer = time.step() / best.evaluation.time.step() - 1;
    out += text("  {}: {}, {} {}: {}; with {}\n", of.setting, seconds_text(time.step()),
                report::percent_text(std::abs(longer)), longer < 0 ? "shorter" : "longer",
                reason(best.evaluation.time, time), changed_settings(report.request, best, *of.best));
  }
  return out;
}

/// The keys of the first plan, by table, with those of --set that it does not replace.
std::vector<plan::PlanKey> run_keys(const SearchReport& report) {
  const RankedPlan& best = report.result.plans.front();
  const std::string& schedule = report.request.space.schedules[static_cast<std::size_t>(best.plan.schedule)];
  std::vector<plan::PlanKey> out = plan::keys_of(report.request, best.plan, best.split);
  for (const plan::PlanKey& set : report.set) {
    // Options of another scheduler do not apply.
    if (set.table == "schedule" && schedule != report.request.run.schedule.name) continue;
    auto after = out.end();
    bool is_replaced = false;
    for (auto at = out.begin(); at != out.end(); ++at) {
      if (at->table == set.table) after = at + 1;
      is_replaced |= at->table == set.table && at->key == set.key;
    }
    if (!is_replaced) out.insert(after, set);
  }
  return out;
}

/// A complete run, which includes the user's from any folder.
std::string plan_toml(const SearchReport& report) {
  const std::string file = std::filesystem::absolute(report.arguments.file).string();
  std::string out = text("include = [{}]\n", Json(file).dump(-1, ' ', false, Json::error_handler_t::replace)), table;
  for (const plan::PlanKey& of : run_keys(report)) {
    if (of.table != table) out += text("\n[{}]\n", table = of.table);
    out += text("{} = {}\n", of.key, of.value);
  }
  return out;
}

/// The value of a setting that no plan has, with the reasons.
Json unavailable_json(const SearchReport& report) {
  Json out = Json::array();
  for (const Refusal& refusal : report.cheap_refusals)
    out.push_back({{"setting", "memory.recompute"},
                   {"value", name_of(Recompute::cheap)},
                   {"message", refusal.message},
                   {"hint", refusal.hint}});
  return out;
}

Json plan_json(const SearchReport& report, const RankedPlan& of) {
  Json settings = Json::object(), parts = Json::object();
  for (const plan::PlanKey& key : plan::keys_of(report.request, of.plan, of.split))
    settings[key.table + "." + key.key] = Json::parse(key.value);
  for (const Part& part : kParts) parts[std::string(part.name) + "_s"] = of.evaluation.time.*part.seconds;
  const Speed speed = speed_of(report, of);
  Json out = {{"settings", std::move(settings)},
              {"step_s", of.evaluation.time.step()},
              {"parts", std::move(parts)},
              {"bytes", of.evaluation.bytes},
              {"tokens_per_s", speed.tokens_per_s}};
  if (speed.days) out["days"] = *speed.days;
  return out;
}

} // namespace

std::string settings_text(const plan::SearchRequest& request, const RankedPlan& plan) {
  std::string out;
  for (const plan::PlanKey& of : plan::keys_of(request, plan.plan, plan.split))
    out += text("{}{}.{} = {}", out.empty() ? "" : ", ", of.table, of.key, of.value);
  return out;
}

std::string to_text(const SearchReport& report) {
  const plan::SearchRequest& request = report.request;
  std::string out = text("{} of {}, batch.global = {}, {} usable per GPU (--reserve {}); {} timed {}\n\n",
                         report::counted_text(request.space.ranks, "GPU"), request.cluster.name, request.space.batch,
                         report::bytes_text(request.memory_limit), report.arguments.reserve, report.planner,
                         report::counted_text(static_cast<std::int64_t>(report.result.timed), "plan"));
  out += plans_table(report) + "p, t, d: pipeline, tensor and data ranks; v: chunks; b: microbatch\n";
  out += "\ntime of a step by part\n" + parts_table(report) + link_table(report);
  out += text("\nstandard error of the first plan's step: {}, from the widths of the cluster's constants\n",
              report::percent_text(report.relative_error));
  if (!report.alternatives.empty()) out += explanation(report);
  return out + "\nthe first plan as a run; save it as a TOML file\n\n" + plan_toml(report);
}

std::string to_json(const SearchReport& report) {
  const plan::SearchRequest& request = report.request;
  Json plans = Json::array(), alternatives = Json::array();
  for (const RankedPlan& of : report.result.plans) plans.push_back(plan_json(report, of));
  for (const plan::Alternative& of : report.alternatives)
    alternatives.push_back({{"setting", of.setting}, {"plan", of.best ? plan_json(report, *of.best) : Json()}});
  Json out = {{"cluster", request.cluster.name},
              {"gpus", request.space.ranks},
              {"memory_limit_bytes", request.memory_limit},
              {"planner", report.planner},
              {"timed", report.result.timed},
              {"stopped", report.result.stopped},
              {"relative_error", report.relative_error},
              {"plans", std::move(plans)},
              {"traffic", links_json(report)}};
  if (report.arguments.explain) out["alternatives"] = std::move(alternatives);
  if (!report.cheap_refusals.empty()) out["unavailable"] = unavailable_json(report);
  out["toml"] = plan_toml(report);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace triax::app
