// SPDX-License-Identifier: Apache-2.0
#include "train/balance.hpp"

#include <algorithm>
#include <cmath>

#include "schedule/simulate.hpp"
#include "train/plugins.hpp"
#include "train/rank_setup.hpp"

namespace triax::train {

namespace {

using schedule::PassTimes;

/// The layers of a stage that run their forward again: blocks, and of those the ones that R repeats.
struct RepeatedLayers {
  executor::LayerRange blocks, early{};
};

/// R repeats the last recomputation group of its stage.
RepeatedLayers repeated_layers(const Model& model, const executor::StageLayers& of, int group, bool recomputes_early) {
  RepeatedLayers out{executor::recomputed_layers(model, group > 0)};
  const int end = of.first + of.count, blocks = end - std::max(of.first, out.blocks.begin);
  if (recomputes_early && group > 0) out.early = {end - ((blocks - 1) % group + 1), end};
  return out;
}

StagePlan plan_stage(const Model& model, const executor::StageLayers& of, const LayerContext& context,
                     const RepeatedLayers& repeated) {
  StagePlan out;
  out.layers = of.count;
  for (int number = of.first; number < of.first + of.count; ++number) {
    const std::unique_ptr<Layer> layer = model.layer(number, context);
    for (const ParamSpec& spec : layer->params()) out.parameters += spec.local.elements();
    const Cost cost = layer->cost();
    out.flops.forward += cost.forward;
    out.flops.backward_input += cost.backward_input + (repeated.blocks.has(number) ? cost.forward : 0);
    if (repeated.early.has(number)) out.early_flops += cost.forward;
    out.flops.backward_weight += cost.backward_weight;
  }
  return out;
}

double step_length(std::span<const schedule::Program> training, std::vector<PassTimes> times) {
  return schedule::simulate(training, {std::move(times)}).makespan_ms();
}

/// Whether the FLOPs can be simulated: a model may report none or invalid values.
bool is_cost(const StagePlan& stage) {
  const Cost& of = stage.flops;
  const auto flops = {of.forward, of.backward_input, of.backward_weight};
  return std::ranges::all_of(flops, [](double value) { return std::isfinite(value) && value >= 0; }) &&
         stage.all_flops() > 0;
}

std::optional<StepEstimate> estimate(std::span<const StagePlan> stages, std::span<const schedule::Program> training,
                                     std::int64_t microbatches) {
  if (training.size() < 2 || !std::ranges::any_of(stages, is_cost)) return std::nullopt;
  double largest = 0;
  for (const StagePlan& stage : stages) {
    if (stage.all_flops() != 0 && !is_cost(stage)) return std::nullopt;
    largest = std::max(largest, stage.all_flops());
  }
  std::vector<PassTimes> times;
  PassTimes mean;
  const auto count = static_cast<double>(stages.size());
  for (const StagePlan& stage : stages) { // relative to the largest, so that sums stay exact enough
    const PassTimes& of = times.emplace_back(
        PassTimes{stage.flops.forward / largest, (stage.flops.backward_input - stage.early_flops) / largest,
                  stage.flops.backward_weight / largest, stage.early_flops / largest});
    mean.forward_ms += of.forward_ms / count;
    mean.input_ms += of.input_ms / count;
    mean.weight_ms += of.weight_ms / count;
    mean.recompute_ms += of.recompute_ms / count;
  }
  const double even = step_length(training, std::vector<PassTimes>(stages.size(), mean));
  const double own = step_length(training, std::move(times));
  const double passes = mean.forward_ms + mean.input_ms + mean.weight_ms + mean.recompute_ms;
  const double work =
      passes * count * static_cast<double>(microbatches) / static_cast<double>(training.size()); // mean over ranks
  return StepEstimate{own / even - 1, 1 - work / own, 1 - work / even};
}

} // namespace

Balance balance_of(const config::RunConfig& run, const Model& model, std::span<const schedule::Program> training,
                   DeviceKind device) {
  const Layout layout = layout_of(run);
  const schedule::StageMap& stage_map = training.front().stage_map();
  Balance out;
  int stage = 0;
  for (const executor::StageLayers& of : executor::split_layers(model, stage_map.stages(), run.parallel.split)) {
    const LayerContext context = layer_context(run, model, layout, 0);
    const int rank = stage_map.rank_of(stage);
    const schedule::Program& program = training[static_cast<std::size_t>(rank)];
    const int group = run.memory.recompute_of(stage) == Recompute::full
                          ? recompute_group(run, model, context, program, stage, device)
                          : 0;
    StagePlan plan = plan_stage(model, of, context, repeated_layers(model, of, group, program.recomputes(stage)));
    plan.pipeline = rank;
    ++stage;
    out.stages.push_back(plan);
  }
  out.step = estimate(out.stages, training, run.microbatches());
  return out;
}

} // namespace triax::train
