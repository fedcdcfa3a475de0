// SPDX-License-Identifier: Apache-2.0
#include "plan/stage_split.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/caught_error.hpp"
#include "config/core_keys.hpp"
#include "config/diagnostics.hpp"
#include "cost/cluster_file.hpp"
#include "cost/default_cluster.hpp"
#include "executor/split.hpp"
#include "plugin/option_text.hpp"
#include "plugin/plugin_call.hpp"
#include "plugin/probe_answer.hpp"
#include "train/plugins.hpp"
#include "train/preflight_process.hpp"
#include "train/rank_placement.hpp"
#include "train/run_limits.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plan {

namespace {

constexpr double kTimeUnits = 1 << 30; // of all layers together
constexpr double kStateBytes = 16;     // of a parameter, as with AdamW and 16-bit weights; decides between equal times

/// The split that `auto` stands for.
struct ChosenSplit {
  Split blocks;
  config::SplitExcess excess;
  Refusals refusals;
};

SplitSettings settings_of(const config::RunConfig& run, const train::RankPlugins& plugins) {
  return {.tensor = run.parallel.tensor,
          .stages = train::pipeline_shape(run).stages(),
          .micro = run.batch.micro,
          .sequence = run.parallel.sequence && run.parallel.tensor > 1,
          .recompute = run.memory.recompute_of(0), // a list has one value: cross_checks.cpp
          .stage_rank = run.parallel.chunks > 1 ? plugins.stage_rank() : std::vector<int>()};
}

/// The time of the pipeline rank that takes most.
std::int64_t busiest(const cost::SplitProblem& problem, const Split& split, const std::vector<int>& stage_rank) {
  const Split times = cost::stage_times(problem, split);
  Split of_ranks(times.size());
  for (std::size_t stage = 0; stage < times.size(); ++stage)
    of_ranks[static_cast<std::size_t>(stage_rank.at(stage))] += times[stage];
  return *std::ranges::max_element(of_ranks);
}

class AutomaticSplit {
 public:
  AutomaticSplit(const config::RunConfig& run, const std::optional<cost::Cluster>& cluster, Log& log)
      : run_(run), cluster_(cluster), log_(log), layout_(train::layout_of(run)) {}

  ChosenSplit choose() const {
    ChosenSplit out;
    const train::RankPlugins plugins(run_, layout_, 0, 1, log_);
    out.refusals = plugins.refusals(layout_, train::choose_placement(run_), false);
    if (out.refusals.empty())
      out.refusals = executor::check_split(plugins.model(), train::pipeline_shape(run_).stages(), {});
    if (!out.refusals.empty()) return out;
    const plugin::CallScope call(run_.model.name, "layer()", {}, plugin::CallKind::slow_call);
    const cost::Cluster cluster = cluster_ ? *cluster_ : cost::default_cluster(device_of(plugins));
    LayerTable layers(run_, cluster, *cost::code_named("triax"), log_);
    const SplitSettings settings = settings_of(run_, plugins);
    out.refusals = layers.recompute_refusals(settings.tensor, settings.micro, settings.sequence, settings.recompute);
    if (!out.refusals.empty()) return out;
    const cost::SplitProblem problem = split_problem(layers, settings);
    out.blocks = automatic_split(problem, settings.stage_rank);
    out.excess = {cost::excess_of(problem, cost::even_split(problem)), cost::excess_of(problem, out.blocks)};
    return out;
  }

 private:
  /// Kernel sets that are not installed here are for GPUs.
  DeviceKind device_of(const train::RankPlugins& plugins) const {
    return run_.kernels.library ? plugins.kernels().device_kind() : DeviceKind::cuda;
  }

  const config::RunConfig& run_;
  const std::optional<cost::Cluster>& cluster_;
  Log& log_;
  const Layout layout_;
};

std::string packed(const ChosenSplit& chosen) {
  return plugin::pack({{"blocks", chosen.blocks},
                       {"excess", {chosen.excess.even, chosen.excess.automatic}},
                       {"refusals", plugin::refusals_json(chosen.refusals)}});
}

ChosenSplit unpacked(const std::string& bytes) {
  const nlohmann::json json = plugin::unpack(bytes);
  ChosenSplit out;
  json.at("blocks").get_to(out.blocks);
  out.excess = {json.at("excess").at(0), json.at("excess").at(1)};
  out.refusals = plugin::read_refusals(json.at("refusals"));
  return out;
}

/// The choice, or why there is none.
ChosenSplit choose_in_child(const config::RunConfig& run, const std::optional<cost::Cluster>& cluster, Log& log) {
  const auto body = [&] {
    try {
      return packed(AutomaticSplit(run, cluster, log).choose());
    } catch (...) { // thrown by the run's plugins
      const RankActivity* const activity = RankActivity::current();
      const Error caught = caught_error();
      const Error error = activity ? activity->with_failed_call(caught) : caught;
      const config::PluginChoice* const failed = activity ? run.find_plugin(activity->failed_plugin()) : nullptr;
      ChosenSplit out;
      if (failed) {
        out.refusals.add(train::failure_of(*failed, error));
      } else {
        out.refusals.add(make_refusal(ErrorCode::kUnsupported, {"parallel.split"}, "parallel.split = \"{}\": {}",
                                      config::kAutomaticSplit, error.message())
                             .with_hint("{}", error.hint()));
      }
      return packed(out);
    }
  };
  train::ChildAnswer answer = train::ask_in_child(run, body);
  if (answer.refusals.empty()) return unpacked(answer.packed);
  return {{}, {}, std::move(answer.refusals)};
}

/// The refusals of the sizes, before a layout or a schedule is made. Generating runs no schedule.
Refusals check_sizes(const config::RunConfig& run) {
  Refusals out = train::check_world(run);
  if (out.empty() && !run.generate) out = train::check_step_size(run);
  return out;
}

void refuse(config::LoadResult& loaded, const Refusals& refusals) {
  for (const Refusal& refusal : refusals) loaded.refusals.push_back(config::diagnose(refusal, loaded.values));
  loaded.run.reset();
}

} // namespace

cost::SplitProblem split_problem(LayerTable& table, const SplitSettings& settings) {
  const Model& model = table.plugins(settings.tensor).model();
  const std::vector<CostedLayer>& layers = table.layers(settings.tensor, settings.micro, settings.sequence);
  const auto loads = [&](Recompute how) -> const std::vector<LayerLoad>& {
    return table.loads(settings.tensor, settings.micro, settings.sequence, how);
  };
  const std::vector<LayerLoad>&of_blocks = loads(settings.recompute), &of_others = loads(Recompute::none);
  const executor::LayerRange blocks = executor::recomputed_layers(model, true);
  const ModelInfo info = model.info();
  const auto kind = [&](int number) {
    return static_cast<std::size_t>(table.kinds()[static_cast<std::size_t>(number)]);
  };
  const auto load_of = [&](int number) -> const LayerLoad& {
    return (blocks.has(number) ? of_blocks : of_others)[kind(number)];
  };
  const auto seconds = [&](int number) {
    const cost::LayerTime& of = layers[kind(number)].time;
    return of.forward.all_s() + of.input.all_s() + of.weight.all_s() + load_of(number).repeated.all_s();
  };
  double all_s = 0;
  for (int number = 0; number < model.count(); ++number) all_s += seconds(number);
  const auto load = [&](int number) {
    return cost::StageLoad{all_s > 0 ? std::llround(seconds(number) / all_s * kTimeUnits) : 0,
                           std::llround(layers[kind(number)].time.parameters * kStateBytes),
                           std::llround(load_of(number).kept.all() + load_of(number).group_bytes)};
  };
  cost::SplitProblem out;
  out.stages = settings.stages;
  const int first = info.first_block, end = first + info.blocks;
  for (int number = 0; number < first; ++number) out.before += load(number);
  for (int number = first; number < end; ++number) out.blocks.push_back(load(number));
  for (int number = end; number < model.count(); ++number) out.after += load(number);
  out.has_before = first > 0;
  out.has_after = end < model.count();
  return out;
}

Split automatic_split(const cost::SplitProblem& problem, const std::vector<int>& stage_rank) {
  Split balanced = cost::balanced_split(problem);
  if (stage_rank.empty()) return balanced;
  Split even = cost::even_split(problem);
  return busiest(problem, balanced, stage_rank) > busiest(problem, even, stage_rank) ? even : balanced;
}

const BalancedSplits::Found& BalancedSplits::find(const SplitSettings& settings) {
  if (const auto found = found_.find(settings); found != found_.end()) return found->second;
  const auto [layers, is_new] =
      problems_.try_emplace(std::tuple(settings.tensor, settings.micro, settings.sequence, settings.recompute));
  cost::SplitProblem& problem = layers->second;
  if (is_new) problem = split_problem(table_, settings);
  problem.stages = settings.stages;
  Split blocks = automatic_split(problem, settings.stage_rank);
  const bool is_even = blocks == cost::even_split(problem);
  return found_.emplace(settings, Found{std::move(blocks), is_even}).first->second;
}

void resolve_split(config::LoadResult& loaded, Log& log) {
  if (!loaded.run || !loaded.run->parallel.is_split_automatic) return;
  const Refusals large = check_sizes(*loaded.run);
  if (!large.empty()) return refuse(loaded, large);
  std::optional<cost::Cluster> cluster;
  if (const std::filesystem::path& file = loaded.run->parallel.split_cluster; !file.empty()) {
    cost::ClusterFile read = cost::read_cluster(file);
    if (!read.cluster) return refuse(loaded, cost::refusals_with_key(read, "parallel.split_cluster"));
    cluster = std::move(read.cluster);
  }
  const ChosenSplit chosen = choose_in_child(*loaded.run, cluster, log);
  if (!chosen.refusals.empty()) return refuse(loaded, chosen.refusals);
  loaded.run->parallel.split = chosen.blocks;
  loaded.run->parallel.excess = chosen.excess;
  const std::string toml = plugin::to_toml(OptionValue(chosen.blocks));
  loaded.run->values["parallel.split"] = toml;
  for (config::ResolvedValue& value : loaded.values) {
    if (value.key != "parallel.split") continue;
    value.value = value.portable = toml;
    value.origin = text("{}, {}", config::kAutomaticSplit, value.origin);
  }
}

} // namespace triax::plan
