// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_search.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "config/option_value.hpp"
#include "cost/cluster_file.hpp"
#include "plan/plan_space.hpp"
#include "plugin/call_guard.hpp"
#include "plugin/probe.hpp"
#include "triax/error.hpp"

namespace triax::plan {

namespace {

constexpr std::string_view kSchedulerPrefix = "sched-", kPlannerPrefix = "plan-";

/// Empty if an option has no default.
std::optional<Options> default_options(const plugin::Library& library) {
  Options out;
  for (const triax_option& option : library.options) {
    if (!option.default_value) return std::nullopt;
    out.set(option.name, config::read_default(option).value.value());
  }
  return out;
}

/// The plans of another evaluator that have another value of one setting.
class OtherPlans final : public PlanEvaluator {
 public:
  using HasSame = std::function<bool(const TrainingPlan&)>;
  OtherPlans(PlanEvaluator& all, HasSame has_same) : all_(all), has_same_(std::move(has_same)) {}

  const PlanSpace& space() const override { return all_.space(); }
  std::optional<PlanBounds> bounds(const TrainingPlan& plan) override {
    return has_same_(plan) ? std::nullopt : all_.bounds(plan);
  }
  std::optional<PlanTime> time(const TrainingPlan& plan) override {
    return has_same_(plan) ? std::nullopt : all_.time(plan);
  }
  std::optional<PlanEvaluation> evaluate(const TrainingPlan& plan) override {
    return has_same_(plan) ? std::nullopt : all_.evaluate(plan);
  }
  std::uint64_t memory_limit() const override { return all_.memory_limit(); }
  bool is_interrupted() override { return all_.is_interrupted(); }

 private:
  PlanEvaluator& all_;
  const HasSame has_same_;
};

template <class Value>
auto same_as(const TrainingPlan& best, Value TrainingPlan::*setting) {
  return [value = best.*setting, setting](const TrainingPlan& plan) { return plan.*setting == value; };
}

std::vector<RankedPlan> searched(PlanEvaluator& evaluator, const LoadedPlanner& planner, int count) {
  const std::vector<TrainingPlan> found =
      plugin::guarded_call(planner.name(), "search", [&] { return (*planner).search(evaluator, count); });
  std::vector<RankedPlan> out;
  const auto refuse = [&planner](const std::string& what) {
    throw Error(text("search() returned {}", what), planner.name(), "report this to the author of the planner");
  };
  if (found.size() > static_cast<std::size_t>(count))
    refuse(text("{} plans; at most {} were requested", found.size(), count));
  std::set<TrainingPlan> seen;
  for (const TrainingPlan& plan : found) {
    if (!contains(evaluator.space(), plan)) refuse(text("a plan outside the space: {}", sizes_text(plan)));
    if (!seen.insert(plan).second) refuse(text("a plan twice: {}", sizes_text(plan)));
    const std::optional<PlanEvaluation> evaluation = evaluator.evaluate(plan);
    if (!evaluation || !evaluation->fits) refuse(text("a plan that does not fit: {}", sizes_text(plan)));
    out.push_back({plan, *evaluation});
  }
  std::ranges::stable_sort(out, {}, [](const RankedPlan& plan) { return plan.evaluation.time.step(); });
  return out;
}

} // namespace

std::vector<config::PluginChoice> schedulers_beside(const config::RunConfig& run) {
  std::vector<config::PluginChoice> out = {run.schedule};
  std::vector<std::filesystem::path> files;
  std::set<std::string> seen = {run.schedule.name};
  const std::vector<plugin::SearchFolder> folders =
      run.schedule.folders.empty() ? plugin::search_folders({}) : run.schedule.folders;
  for (const plugin::SearchFolder& folder : folders)
    for (const std::filesystem::path& file : plugin::candidates(folder.folder))
      if (file.stem().string().starts_with(kSchedulerPrefix) && seen.insert(file.stem().string()).second)
        files.push_back(file);
  const auto failures = plugin::probe_loading(files);
  for (const std::filesystem::path& file : files) {
    if (failures.contains(file)) continue;
    try {
      const plugin::Library& library = plugin::load(file, Scheduler::kKind);
      std::optional<Options> options = default_options(library);
      if (!options) continue;
      config::PluginChoice& choice = out.emplace_back(run.schedule);
      choice.name = library.descriptor->name;
      choice.library = &library;
      choice.options = std::move(*options);
      choice.shadowed.clear();
    } catch (const Error&) { // the run does not name it: triax plugins doctor says what is wrong with it
      continue;
    }
  }
  return out;
}

LoadedPlanner::LoadedPlanner(const std::string& name, const std::vector<plugin::SearchFolder>& folders, Log& log) {
  const bool is_whole = plugin::is_path(name) || name.starts_with(kPlannerPrefix);
  const std::filesystem::path file =
      plugin::locate(is_whole ? name : std::string(kPlannerPrefix) + name, folders, {}, plugin::FolderChoice::key).file;
  const std::vector<std::filesystem::path> files = {file};
  if (const auto failures = plugin::probe_loading(files); !failures.empty())
    throw Error(failures.begin()->second.reason(), file.string(), failures.begin()->second.hint(file));
  library_ = &plugin::load(file, Planner::kKind);
  name_ = library_->descriptor->name;
  std::optional<Options> options = default_options(*library_);
  if (!options)
    throw Error("it has an option without a default, but planners have the defaults of their options", name_,
                "use another planner");
  options_ = std::move(*options);
  planner_ = plugin::create<Planner>(*library_, {options_, log, layout_, 0, 1}, folders);
}

SearchResult search_plans(PlanCosts& costs, const LoadedPlanner& planner, int count) {
  SearchResult out;
  out.plans = searched(costs, planner, count);
  for (RankedPlan& of : out.plans) of.split = costs.split(of.plan);
  out.timed = costs.timed();
  out.stopped = costs.is_interrupted();
  return out;
}

std::vector<Alternative> alternatives(PlanCosts& costs, const LoadedPlanner& planner, const TrainingPlan& best) {
  const PlanSpace& space = costs.space();
  const struct {
    const char* setting;
    std::size_t values;
    OtherPlans::HasSame has_same;
  } kSettings[] = {{"parallel.pipeline", space.pipeline.size(), same_as(best, &TrainingPlan::pipeline)},
                   {"parallel.tensor", space.tensor.size(), same_as(best, &TrainingPlan::tensor)},
                   {"parallel.data", space.data.size(), same_as(best, &TrainingPlan::data)},
                   {"parallel.chunks", space.chunks.size(), same_as(best, &TrainingPlan::chunks)},
                   {"parallel.sequence", space.sequence.size(), same_as(best, &TrainingPlan::sequence)},
                   {"batch.micro", space.micro.size(), same_as(best, &TrainingPlan::micro)},
                   {"memory.recompute", space.recompute.size(), same_as(best, &TrainingPlan::recompute)},
                   {"schedule.plugin", space.schedules.size(), same_as(best, &TrainingPlan::schedule)},
                   {"optimizer.shard", space.shards.size(), same_as(best, &TrainingPlan::shard)},
                   {"parallel.split", space.balanced.size(), same_as(best, &TrainingPlan::balanced)}};
  std::vector<Alternative> out;
  for (const auto& of : kSettings) {
    if (of.values < 2 || costs.is_interrupted()) continue;
    OtherPlans others(costs, of.has_same);
    std::vector<RankedPlan> found = searched(others, planner, 1);
    for (RankedPlan& ranked : found) ranked.split = costs.split(ranked.plan);
    if (costs.is_interrupted()) break; // the search of this setting is not complete
    out.push_back({of.setting, found.empty() ? std::nullopt : std::optional(found.front())});
  }
  return out;
}

std::optional<RankedPlan> least_memory(PlanCosts& costs) {
  std::vector<std::pair<std::uint64_t, TrainingPlan>> bounded;
  for_each_plan(costs.space(), [&](const TrainingPlan& plan) {
    if (const std::optional<PlanBounds> bounds = costs.bounds(plan)) bounded.emplace_back(bounds->bytes, plan);
    return !costs.is_interrupted();
  });
  std::ranges::stable_sort(bounded, {}, &std::pair<std::uint64_t, TrainingPlan>::first);
  std::optional<RankedPlan> out;
  for (const auto& [bytes, plan] : bounded) {
    if (costs.is_interrupted() || (out && bytes >= out->evaluation.bytes)) break;
    const std::optional<std::uint64_t> exact = costs.exact_bytes(plan);
    if (exact && (!out || *exact < out->evaluation.bytes))
      out = RankedPlan{plan, {false, *exact, {}}, costs.split(plan)};
  }
  return out;
}

double relative_error(const SearchRequest& request, const cost::CodeTraits& code, const RankedPlan& plan, Log& log) {
  const auto time = [&plan](PlanCosts& costs) {
    if (plan.plan.balanced) costs.set_split(plan.plan, plan.split); // other costs would give another
    return costs.time(plan.plan).value().step();
  };
  PlanCosts unchanged(request, code, log);
  const auto step_on = [&](const cost::Cluster& cluster) {
    const SearchRequest changed{
        request.run, cluster, request.space, request.schedules, request.memory_limit, request.tokens_per_step};
    PlanCosts costs(changed, code, log, &unchanged.schedules());
    return time(costs);
  };
  const double step = time(unchanged);
  cost::Cluster cluster = request.cluster;
  double squares = 0;
  for (cost::Constant* const constant : cost::uncertain_constants(cluster)) {
    const double value = constant->value;
    constant->value = value * (1 + constant->width);
    const double change = step_on(cluster) / step - 1;
    constant->value = value;
    squares += change * change;
  }
  return std::sqrt(squares);
}

} // namespace triax::plan
