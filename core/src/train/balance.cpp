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

StagePlan plan_stage(const Model& model, const executor::StageLayers& of, const LayerContext& context,
                     const executor::LayerRange& recomputed) {
  StagePlan out;
  out.layers = of.count;
  for (int number = of.first; number < of.first + of.count; ++number) {
    const std::unique_ptr<Layer> layer = model.layer(number, context);
    for (const ParamSpec& spec : layer->params()) out.parameters += spec.local.elements();
    const Cost cost = layer->cost();
    out.flops.forward += cost.forward;
    out.flops.backward_input += cost.backward_input + (recomputed.has(number) ? cost.forward : 0);
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
    const PassTimes& of = times.emplace_back(PassTimes{
        stage.flops.forward / largest, stage.flops.backward_input / largest, stage.flops.backward_weight / largest});
    mean.forward_ms += of.forward_ms / count;
    mean.input_ms += of.input_ms / count;
    mean.weight_ms += of.weight_ms / count;
  }
  const double even = step_length(training, std::vector<PassTimes>(stages.size(), mean));
  const double own = step_length(training, std::move(times));
  const double work = (mean.forward_ms + mean.input_ms + mean.weight_ms) * count * static_cast<double>(microbatches) /
                      static_cast<double>(training.size()); // mean over ranks
  return StepEstimate{own / even - 1, 1 - work / own, 1 - work / even};
}

} // namespace

Balance balance_of(const config::RunConfig& run, const Model& model, std::span<const schedule::Program> training) {
  const Layout layout = layout_of(run);
  const schedule::StageMap& stage_map = training.front().stage_map();
  Balance out;
  int stage = 0;
  for (const executor::StageLayers& of : executor::split_layers(model, stage_map.stages(), run.parallel.split)) {
    StagePlan plan = plan_stage(model, of, layer_context(run, model, layout, 0),
                                executor::recomputed_layers(model, run.memory.recompute_of(stage) == Recompute::full));
    plan.pipeline = stage_map.rank_of(stage++);
    out.stages.push_back(plan);
  }
  out.step = estimate(out.stages, training, run.microbatches());
  return out;
}

} // namespace triax::train
