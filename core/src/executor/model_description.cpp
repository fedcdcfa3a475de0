// SPDX-License-Identifier: Apache-2.0
#include "executor/model_description.hpp"

#include <algorithm>
#include <iterator>

#include "executor/model_error.hpp"
#include "executor/tie_check.hpp"
#include "triax/rank_activity.hpp"

namespace triax::executor {

std::vector<std::unique_ptr<Layer>> make_layers(const Model& model, const LayerContext& context,
                                                const StageLayers& of) {
  std::vector<std::unique_ptr<Layer>> layers;
  layers.reserve(static_cast<std::size_t>(of.count));
  call_plugin("layer", typeid(model), [&] {
    for (int i = 0; i < of.count; ++i) layers.push_back(model.layer(of.first + i, context));
  });
  return layers;
}

ModelDescription::ModelDescription(const Model& model, const LayerContext& context, std::span<const StageLayers> split,
                                   const schedule::StageMap& stage_map, const MemoryTypes& types,
                                   schedule::Sharding sharding)
    : rank_(context.layout.describe(context.rank)), first_rank_(context.layout.describe(0)) {
  std::vector<ModelParameters::NumberedLayer> numbered;
  for (int stage = 0; stage < stage_map.stages(); ++stage) {
    std::ranges::move(make_layers(model, context, split[static_cast<std::size_t>(stage)]), std::back_inserter(layers_));
    while (numbered.size() < layers_.size())
      numbered.push_back({static_cast<int>(numbered.size()), layers_[numbered.size()].get(), stage_map.rank_of(stage)});
  }
  call_plugin("ties", typeid(model), [&] { ties_.assign(model.ties().begin(), model.ties().end()); });
  parameters_ = std::make_shared<ModelParameters>(numbered, context.rank, context.layout, ties_, types, sharding);
}

void ModelDescription::check_parameters(int number, const Layer& layer) const {
  const auto alike = [](const ParamSpec& a, const ParamSpec& b) {
    return a.name == b.name && a.global == b.global && a.local == b.local && a.cuts == b.cuts && a.partial == b.partial;
  };
  require_of_model(std::ranges::equal(layer.params(), this->layer(number).params(), alike),
                   "layer {}: {} has other parameters on another pipeline rank", number, layer.name());
}

void ModelDescription::check_ties(const Model& model, const LayerContext& context,
                                  std::span<const ModelParameters::NumberedLayer> layers, int pipeline_rank) const {
  const std::string rank = context.layout.describe(context.rank);
  std::vector<Tie> ties;
  call_plugin("ties", typeid(model), [&] { ties.assign(model.ties().begin(), model.ties().end()); });
  check_tie_lists(ties_, first_rank_, ties, rank);
  const std::string& described_on = rank == rank_ ? first_rank_ : rank_; // objects of two ranks differ
  const auto is_own = [&](int number) { return layers[static_cast<std::size_t>(number)].rank == pipeline_rank; };
  const auto check = [&](int number, const std::string& param, const std::string& tied_to) {
    std::vector<std::unique_ptr<Layer>> made;
    if (!is_own(number)) made = make_layers(model, context, {number, 1});
    const Layer* const own = made.empty() ? layers[static_cast<std::size_t>(number)].layer : made.front().get();
    require_of_model(own, "the model returns no layer {} on {}", number, rank);
    check_tied_parameter(param, tied_to, {layer(number), described_on}, {*own, rank}, TieProperties::part);
  };
  for (const Tie& tie : ties_) {
    if (!is_own(tie.layer_a) && !is_own(tie.layer_b)) continue;
    check(tie.layer_a, tie.param_a, text("{} of layer {}", tie.param_b, tie.layer_b));
    check(tie.layer_b, tie.param_b, text("{} of layer {}", tie.param_a, tie.layer_a));
  }
}

void ModelDescription::check_ties(const ModelDescription& other) const {
  const auto check = [&](int number, const std::string& param, const std::string& tied_to) {
    check_tied_parameter(param, tied_to, {layer(number), rank_}, {other.layer(number), other.rank_},
                         TieProperties::model);
  };
  for (const Tie& tie : ties_) {
    check(tie.layer_a, tie.param_a, text("{} of layer {}", tie.param_b, tie.layer_b));
    check(tie.layer_b, tie.param_b, text("{} of layer {}", tie.param_a, tie.layer_a));
  }
}

} // namespace triax::executor
