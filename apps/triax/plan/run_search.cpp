// SPDX-License-Identifier: Apache-2.0
#include "plan/run_search.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <set>

#include "common/errors_out.hpp"
#include "common/memory_limit.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "os/stop_signals.hpp"
#include "plan/plan_acceptance.hpp"
#include "plan/plan_space.hpp"
#include "plan/profile_check.hpp"
#include "plan/search_progress.hpp"
#include "plan/search_report.hpp"
#include "report/run_log.hpp"
#include "report/units.hpp"
#include "train/plugins.hpp"
#include "train/rank_placement.hpp"
#include "triax/rank_activity.hpp"

namespace triax::app {

namespace {

/// The facts about the run's plugins that a search needs besides their costs.
struct PluginFacts {
  ModelInfo model;
  bool can_shard_states = true;
};
PluginFacts facts_of(const config::RunConfig& run, Log& log) {
  const Layout layout = Layout::ptd(1, 1, 1);
  config::RunConfig alone = run;
  alone.parallel = {};
  const train::RankPlugins plugins(alone, layout, 0, 1, log);
  return {plugins.model().info(), plugins.optimizer_traits().may_be_sharded()};
}

double tokens_per_step(const config::RunConfig& run, const ModelInfo& model) {
  return static_cast<double>(run.batch.global) * static_cast<double>(model.sequence);
}

std::int64_t gpus_of(const config::RunConfig& run, const SearchArguments& arguments) {
  if (arguments.gpus) return *arguments.gpus;
  return std::int64_t{run.parallel.pipeline} * run.parallel.tensor * run.parallel.data; // each is at most 65536
}

Refusal too_many(std::int64_t gpus) {
  return make_refusal(ErrorCode::kTooLarge, {"parallel.data", "parallel.tensor", "parallel.pipeline"},
                      "the run's layout has {} ranks; the limit is {}", gpus, train::kMaxWorld)
      .with_hint("name a number of GPUs with --gpus");
}

std::uint64_t reserve_of(const SearchArguments& arguments) {
  return arguments.reserve == kNoReserve ? 0 : parse_memory_limit(arguments.reserve).bytes;
}

Refusal no_memory_left(const SearchArguments& arguments, std::uint64_t memory) {
  return make_refusal(ErrorCode::kInvalidValue, {"--reserve"},
                      "--reserve {} must be less than device.memory_bytes = {} ({})", arguments.reserve,
                      report::bytes_text(memory), arguments.cluster)
      .with_hint("use a smaller --reserve, such as {}", kNoReserve);
}

std::optional<TrainingPlan> first_plan(const PlanSpace& space) {
  std::optional<TrainingPlan> out;
  for_each_plan(space, [&out](const TrainingPlan& plan) {
    out = plan;
    return false;
  });
  return out;
}

constexpr int kMaxDistance = 64;

/// "use --gpus 4 or 8": the nearest numbers of GPUs whose plans `accepts`, down to `least`.
std::string nearest_gpus(const plan::SpaceRequest& space, const SearchArguments& arguments, int least,
                         const std::function<bool(const PlanSpace&)>& accepts) {
  const auto has_plan = [&](int gpus) {
    plan::SpaceRequest other = space;
    other.ranks = gpus;
    PlanSpace values = plan::make_space(other);
    return plan::fix_settings(values, arguments.fixed, "--fix").empty() && accepts(values);
  };
  std::string out;
  for (int gpus = space.ranks - 1; gpus >= std::max(least, 1) && out.empty(); --gpus)
    if (has_plan(gpus)) out = text("use --gpus {}", gpus);
  for (int gpus = space.ranks + 1; gpus <= space.ranks + kMaxDistance; ++gpus)
    if (has_plan(gpus)) return out.empty() ? text("use --gpus {}", gpus) : text("{} or {}", out, gpus);
  return out.empty() ? "use another --gpus" : out;
}

/// "use --gpus 4 or 8, or another batch.global, or fewer --fix"
std::string other_request(std::string next, const SearchArguments& arguments) {
  return next + ", or another batch.global" + (arguments.fixed.empty() ? "" : ", or fewer --fix");
}

Refusal no_layout(const plan::SpaceRequest& space, const SearchArguments& arguments) {
  const std::int64_t batch = space.run.batch.global;
  return make_refusal(
             ErrorCode::kUnsupported, {"--gpus"},
             "no layout of {} fits batch.global = {}: pipeline x tensor x data must be {}, and data must divide {}",
             report::counted_text(space.ranks, "GPU"), batch, space.ranks, batch)
      .with_hint("{}", other_request(nearest_gpus(space, arguments, space.ranks - kMaxDistance,
                                                  [](const PlanSpace& of) { return first_plan(of).has_value(); }),
                                     arguments));
}

/// "use --gpus 4 or 8": the nearest numbers of GPUs with a plan that the plugins accept.
std::string accepted_gpus(const SearchReport& report, const plan::SpaceRequest& space, Log& log) {
  plan::SearchRequest request = report.request;
  const cost::CodeTraits code = *cost::code_named("triax");
  plan::PlanCosts costs(request, code, log);
  const auto accepts = [&](const PlanSpace& of) {
    request.space = plan::layouts_of(of); // the costs refer to it
    bool out = false;
    for_each_plan(request.space, [&](const TrainingPlan& plan) {
      out = costs.bounds(plan).has_value();
      return !out;
    });
    return out;
  };
  return nearest_gpus(space, report.arguments, 1, accepts);
}

/// With the refusals of the first plan, which stand for those of all. `next`: "use --gpus 4 or 8".
Refusals all_refused(const SearchReport& report, const std::string& next) {
  const TrainingPlan first = first_plan(report.request.space).value();
  Refusals out =
      make_refusal(ErrorCode::kUnsupported, {"--gpus"},
                   "the plugins of the run refuse every plan on {}; the first is pipeline {} x tensor {} x data {}",
                   report::counted_text(report.request.space.ranks, "GPU"), first.pipeline, first.tensor, first.data)
          .with_hint("{}", other_request(next, report.arguments));
  std::set<std::string> of_plan;
  for (const plan::PlanKey& key : plan::keys_of(report.request, first)) of_plan.insert(key.table + "." + key.key);
  for (Refusal refusal : report.refusals) {
    // The user does not set a key of the plan.
    if (std::ranges::any_of(refusal.keys, [&](const std::string& key) { return of_plan.contains(key); }))
      refusal.hint.clear();
    out.add(refusal);
  }
  return out;
}

Refusals nothing_fits(const SearchReport& report) {
  const plan::SearchRequest& request = report.request;
  return make_refusal(ErrorCode::kOutOfMemory, {"--gpus"},
                      "no plan on {} fits in {} per GPU; the smallest needs {}: {}",
                      report::counted_text(request.space.ranks, "GPU"), report::bytes_text(request.memory_limit),
                      report::bytes_text(report.least->evaluation.bytes), settings_text(request, *report.least))
      .with_hint("use more --gpus, a cluster with more memory per device{}",
                 report.arguments.fixed.empty() ? " or a smaller model" : ", a smaller model or fewer --fix");
}

/// The run's values, with those of the first plan in their place: the plugins refuse that plan.
std::vector<config::ResolvedValue> values_of_plan(const plan::SearchRequest& request,
                                                  std::vector<config::ResolvedValue> values) {
  const std::optional<TrainingPlan> first = first_plan(request.space);
  if (!first) return values;
  for (const plan::PlanKey& of : plan::keys_of(request, *first)) {
    const std::string key = text("{}.{}", of.table, of.key);
    std::erase_if(values, [&key](const config::ResolvedValue& value) { return value.key == key; });
    values.push_back({key, of.value, "the plan"});
  }
  // The keys of the run's scheduler, which another one does not have.
  if (request.schedules.at(static_cast<std::size_t>(first->schedule)).name != request.run.schedule.name)
    std::erase_if(values, [](const config::ResolvedValue& value) {
      return value.key.starts_with("schedule.") && value.key != "schedule.plugin";
    });
  return values;
}

/// The refusals of the run's plugins, with the positions of the keys that no plan sets.
std::vector<config::Diagnostic> diagnose(const Refusals& refusals, const plan::SearchRequest& request,
                                         const config::LoadResult& loaded) {
  const std::vector<config::ResolvedValue> values = values_of_plan(request, loaded.values);
  std::vector<config::Diagnostic> out;
  for (const Refusal& refusal : refusals) out.push_back(config::diagnose(refusal, values));
  return out;
}

/// `run` must outlive the request.
plan::SpaceRequest space_of(const config::RunConfig& run, const cost::Cluster& cluster,
                            const SearchArguments& arguments, const std::vector<config::PluginChoice>& schedules,
                            Log& log) {
  std::vector<std::string> names;
  names.reserve(schedules.size());
  for (const config::PluginChoice& choice : schedules) names.push_back(choice.name);
  const PluginFacts facts = facts_of(run, log);
  const std::int64_t gpus = std::min(gpus_of(run, arguments), train::kMaxWorld);
  return {run, cluster, static_cast<int>(gpus), facts.model, names, facts.can_shard_states};
}

/// `run` must outlive the request.
plan::SearchRequest request_of(const config::RunConfig& run, const cost::Cluster& cluster,
                               const SearchArguments& arguments, Log& log, Refusals& refusals) {
  const std::vector<config::PluginChoice> schedules = plan::schedulers_beside(run);
  const std::uint64_t reserve = reserve_of(arguments);
  const auto memory = static_cast<std::uint64_t>(cluster.device.memory_bytes.value);
  const plan::SpaceRequest space = space_of(run, cluster, arguments, schedules, log);
  if (gpus_of(run, arguments) > train::kMaxWorld) refusals.add(too_many(gpus_of(run, arguments)));
  if (reserve >= memory) refusals.add(no_memory_left(arguments, memory));
  plan::SearchRequest request{run,
                              cluster,
                              plan::make_space(space),
                              {},
                              memory > reserve ? memory - reserve : 0,
                              tokens_per_step(run, space.model)};
  const Refusals unfixed = plan::fix_settings(request.space, arguments.fixed, "--fix");
  refusals.add(unfixed);
  if (unfixed.empty() && gpus_of(run, arguments) <= train::kMaxWorld && !first_plan(request.space))
    refusals.add(no_layout(space, arguments));
  for (const std::string& name : request.space.schedules)
    request.schedules.push_back(*std::ranges::find(schedules, name, &config::PluginChoice::name));
  return request;
}

/// The plan is printed as a run that includes the file.
Refusal pipe_refusal(const std::string& file) {
  return make_refusal(ErrorCode::kInvalidValue, {"RUN.toml"},
                      "RUN.toml must be a file, got the pipe {}: the printed plan includes it by path", file)
      .with_hint("write the run to a file");
}

/// The keys of --set, each once, with their values as TOML and absolute paths.
std::vector<plan::PlanKey> set_keys(const config::LoadResult& loaded, const SearchArguments& arguments) {
  std::vector<plan::PlanKey> out;
  for (const config::ResolvedValue& value : loaded.values) {
    if (std::ranges::find(arguments.overrides, value.key, &config::Override::key) == arguments.overrides.end())
      continue;
    const std::size_t dot = value.key.rfind('.');
    out.push_back({value.key.substr(0, dot), value.key.substr(dot + 1), value.value});
  }
  return out;
}

SearchReport search(const plan::SearchRequest& request, const SearchArguments& arguments,
                    const plan::LoadedPlanner& planner, Log& log) {
  SearchReport out{arguments, request};
  const cost::CodeTraits code = *cost::code_named("triax");
  out.planner = planner.name();
  plan::PlanCosts costs(request, code, log);
  os::StopSignals signals;
  SearchProgress progress;
  costs.set_is_interrupted([&] {
    progress.show(costs.timed());
    return signals.caught() != 0;
  });
  out.result = plan::search_plans(costs, planner, arguments.top);
  if (out.result.plans.empty()) {
    if (!out.result.stopped) out.least = plan::least_memory(costs);
    out.result.stopped = costs.is_interrupted();
    if (!out.least && !out.result.stopped) out.refusals = costs.refusals(first_plan(request.space).value());
    return out;
  }
  out.cheap_refusals = costs.cheap_refusals();
  const plan::RankedPlan& best = out.result.plans.front();
  if (arguments.explain) out.alternatives = plan::alternatives(costs, planner, best.plan);
  out.result.stopped = costs.is_interrupted();
  out.relative_error = plan::relative_error(request, code, best, log);
  out.traffic = plan::link_traffic(plan::run_of(request, best.plan, best.split), request.cluster.node.devices, log);
  return out;
}

} // namespace

int search_run(const cost::Cluster& cluster, const SearchArguments& arguments) {
  // Plugins that throw are known by it.
  RankActivity activity;
  const RankActivity::Binding bound(activity);
  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, 0);
  if (config::is_piped(arguments.file)) return refuse(diagnostics_of(pipe_refusal(arguments.file)), arguments.json);
  const config::LoadResult loaded = config::load(arguments.file, arguments.overrides, {}, config::Purpose::plan);
  if (!loaded.run) return refuse(loaded.refusals, arguments.json);
  Refusals refusals = check_profile(cluster, arguments.cluster, &*loaded.run);
  if (!refusals.empty()) return refuse(refusals, arguments.json);
  const plan::SearchRequest request = request_of(*loaded.run, cluster, arguments, *log, refusals);
  if (!refusals.empty()) return refuse(refusals, arguments.json);
  if (const Refusals of_all = plan::refusals_of_all_plans(request, *log); !of_all.empty())
    return refuse(diagnose(of_all, request, loaded), arguments.json);
  std::optional<plan::LoadedPlanner> planner;
  try {
    planner.emplace(arguments.planner, loaded.run->schedule.folders, *log);
  } catch (const Error& error) {
    const Error located("--planner " + arguments.planner + ": " + error.message(), error.where(), error.hint());
    return refuse(ErrorCode::kUnknownPlugin, located, "--planner", arguments.json);
  }
  SearchReport report = search(request, arguments, *planner, *log);
  report.set = set_keys(loaded, arguments);
  if (report.result.plans.empty()) {
    if (report.result.stopped) {
      print_problem("the search was interrupted before it found a plan; run it again, with --fix to search less",
                    arguments.json);
      return kFailed;
    }
    const Refusals why = report.least
                             ? nothing_fits(report)
                             : all_refused(report, accepted_gpus(report,
                                                                 space_of(*loaded.run, cluster, arguments,
                                                                          plan::schedulers_beside(*loaded.run), *log),
                                                                 *log));
    return refuse(diagnose(why, request, loaded), arguments.json, kFailed);
  }
  if (report.result.stopped)
    print_problem("note: the search was interrupted; the plans are the best of those that it timed");
  for (const Refusal& refusal : report.cheap_refusals)
    print_problem(text("note: no plan has cheap recomputation: {}\n  {}", refusal.message, refusal.hint));
  result_out() << (arguments.json ? to_json(report) : to_text(report));
  return kDone;
}

} // namespace triax::app
