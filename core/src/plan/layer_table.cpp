// SPDX-License-Identifier: Apache-2.0
#include "plan/layer_table.hpp"

#include <algorithm>
#include <utility>

#include "plugin/call_guard.hpp"
#include "train/memory_ranks.hpp"

namespace triax::plan {

namespace {

double bytes_in(DType dtype, const Shape& shape) {
  return static_cast<double>(TensorView(nullptr, dtype, shape).bytes());
}

/// Counts a tensor that is kept from the forward to the backward.
void count_kept(CostedLayer& costed, Life life, double bytes) {
  if (life == Life::forward_to_input) costed.until_input_bytes += bytes;
  if (life == Life::forward_to_weight) costed.until_weight_bytes += bytes;
}

} // namespace

LayerTable::TensorRank::TensorRank(const config::RunConfig& of, int tensor, Log& log)
    : run([&] {
        config::RunConfig out = of;
        out.parallel.pipeline = out.parallel.data = 1;
        out.parallel.tensor = tensor;
        return out;
      }()),
      layout(train::layout_of(run)),
      plugins(run, layout, 0, 1, log) {}

LayerTable::LayerTable(const config::RunConfig& run, const cost::Cluster& cluster, const cost::CodeTraits& code,
                       Log& log)
    : run_(run), log_(log), costs_(cluster, code), collectives_(cluster), devices_per_node_(cluster.node.devices) {
  TensorRank& of = rank_of(1);
  const Model& model = of.plugins.model();
  LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  context.sequence_parallel = false;
  kinds_ = train::layer_kinds(model, context);
  for (std::size_t number = 0; number < kinds_.size(); ++number)
    if (kinds_[number] == static_cast<int>(first_of_kind_.size())) first_of_kind_.push_back(static_cast<int>(number));
}

LayerTable::TensorRank& LayerTable::rank_of(int tensor) {
  std::unique_ptr<TensorRank>& out = ranks_[tensor];
  if (!out) out = std::make_unique<TensorRank>(run_, tensor, log_);
  return *out;
}

const std::vector<CostedLayer>& LayerTable::layers(int tensor, std::int64_t micro, bool sequence) {
  std::vector<CostedLayer>& costed_layers = layers_[{tensor, micro, sequence}];
  if (!costed_layers.empty()) return costed_layers;
  std::vector<CostedLayer> out; // kept only if no plugin throws
  TensorRank& of = rank_of(tensor);
  const Model& model = of.plugins.model();
  LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  context.micro = micro;
  context.sequence_parallel = sequence;
  const auto supports = [&](const OpCall& call) {
    return plugin::guarded_call(run_.kernels.name, "supports", [&] { return of.plugins.kernels().supports(call); });
  };
  for (const int number : first_of_kind_) {
    const std::unique_ptr<Layer> layer =
        plugin::guarded_call(run_.model.name, "layer", [&] { return model.layer(number, context); });
    CostedLayer& costed = out.emplace_back();
    costed.time = costs_.of(*layer, context, supports);
    for (const StashSpec& spec : layer->stash()) count_kept(costed, spec.life, bytes_in(spec.dtype, spec.shape));
    for (const TensorSpec& spec : layer->inputs()) {
      if (!is_floating(spec.dtype)) continue;
      costed.input_bytes += bytes_in(spec.dtype, spec.shape);
      count_kept(costed, spec.life, bytes_in(spec.dtype, spec.shape));
    }
  }
  costed_layers = std::move(out);
  return costed_layers;
}

Refusals LayerTable::refusals(int tensor, std::int64_t micro, bool sequence) {
  Refusals out;
  for (const CostedLayer& layer : layers(tensor, micro, sequence))
    for (const Refusal& refusal : train::of_kernels(run_, layer.time.refusals))
      if (std::ranges::find(out, refusal) == out.end()) out.add(refusal);
  return out;
}

KeptInput LayerTable::kept_input(const CostedLayer& layer, int tensor, bool sequence) const {
  if (!run_.memory.partition_activations || sequence || tensor == 1) return {layer.input_bytes, 0};
  const config::PerStage<std::int64_t>& groups = run_.memory.recompute_layers;
  const std::int64_t group = groups.is_list() ? 1 : std::max<std::int64_t>(groups.of(0), 1);
  const double part = layer.input_bytes / tensor;
  return {part, collectives_.seconds(Collective::Kind::all_gather, part, cost::placed(tensor, 1, devices_per_node_)) /
                    static_cast<double>(group)};
}

const std::vector<double>& LayerTable::tied_elements(int tensor) {
  TensorRank& of = rank_of(tensor);
  const Model& model = of.plugins.model();
  if (of.tied_elements.size() == model.ties().size()) return of.tied_elements;
  const LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  std::vector<double> out;
  for (const Tie& tie : model.ties()) {
    double& elements = out.emplace_back();
    const std::unique_ptr<Layer> layer = model.layer(tie.layer_a, context);
    for (const ParamSpec& spec : layer->params())
      if (spec.name == tie.param_a) elements = static_cast<double>(spec.local.elements());
  }
  of.tied_elements = std::move(out);
  return of.tied_elements;
}

} // namespace triax::plan
