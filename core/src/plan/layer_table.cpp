// SPDX-License-Identifier: Apache-2.0
#include "plan/layer_table.hpp"

#include "train/rank_setup.hpp"
#include "triax/text.hpp"

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

template <class Specs>
std::string shapes_of(const Specs& specs) {
  std::string out;
  for (const auto& spec : specs)
    out += text("{}:{}:{};", spec.name, static_cast<int>(spec.dtype), bytes_in(spec.dtype, spec.shape));
  return out;
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
    : run_(run), log_(log), costs_(cluster, code) {
  TensorRank& of = rank_of(1);
  const Model& model = of.plugins.model();
  LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  context.sequence_parallel = false;
  std::map<std::string, int> known;
  for (int number = 0; number < model.count(); ++number) {
    const auto [found, is_new] =
        known.emplace(description(*model.layer(number, context)), static_cast<int>(known.size()));
    if (is_new) first_of_kind_.push_back(number);
    kinds_.push_back(found->second);
  }
}

LayerTable::TensorRank& LayerTable::rank_of(int tensor) {
  std::unique_ptr<TensorRank>& out = ranks_[tensor];
  if (!out) out = std::make_unique<TensorRank>(run_, tensor, log_);
  return *out;
}

/// All but the name of the layer.
std::string LayerTable::description(const Layer& layer) {
  const Cost cost = layer.cost();
  std::string out = text("{} {} {} ", cost.forward, cost.backward_input, cost.backward_weight);
  for (const ParamSpec& spec : layer.params()) out += text("{}:{};", spec.name, spec.local.elements());
  return out + shapes_of(layer.stash()) + shapes_of(layer.inputs()) + shapes_of(layer.outputs());
}

const std::vector<CostedLayer>& LayerTable::layers(int tensor, std::int64_t micro, bool sequence) {
  std::vector<CostedLayer>& out = layers_[{tensor, micro, sequence}];
  if (!out.empty()) return out;
  TensorRank& of = rank_of(tensor);
  const Model& model = of.plugins.model();
  LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  context.micro = micro;
  context.sequence_parallel = sequence;
  for (const int number : first_of_kind_) {
    const std::unique_ptr<Layer> layer = model.layer(number, context);
    CostedLayer& costed = out.emplace_back();
    costed.time = costs_.of(*layer, context);
    for (const StashSpec& spec : layer->stash()) count_kept(costed, spec.life, bytes_in(spec.dtype, spec.shape));
    for (const TensorSpec& spec : layer->inputs()) {
      if (!is_floating(spec.dtype)) continue;
      costed.input_bytes += bytes_in(spec.dtype, spec.shape);
      count_kept(costed, spec.life, bytes_in(spec.dtype, spec.shape));
    }
  }
  return out;
}

const std::vector<double>& LayerTable::tied_elements(int tensor) {
  TensorRank& of = rank_of(tensor);
  const Model& model = of.plugins.model();
  if (of.tied_elements.size() == model.ties().size()) return of.tied_elements;
  const LayerContext context = train::layer_context(of.run, model, of.layout, 0);
  for (const Tie& tie : model.ties()) {
    double& elements = of.tied_elements.emplace_back();
    const std::unique_ptr<Layer> layer = model.layer(tie.layer_a, context);
    for (const ParamSpec& spec : layer->params())
      if (spec.name == tie.param_a) elements = static_cast<double>(spec.local.elements());
  }
  return of.tied_elements;
}

} // namespace triax::plan
