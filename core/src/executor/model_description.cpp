// SPDX-License-Identifier: Apache-2.0
#include "executor/model_description.hpp"

#include <algorithm>
#include <iterator>

#include "executor/model_error.hpp"
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
                                   schedule::Sharding sharding) {
  std::vector<ModelParameters::NumberedLayer> numbered;
  for (int stage = 0; stage < stage_map.stages(); ++stage) {
    std::ranges::move(make_layers(model, context, split[static_cast<std::size_t>(stage)]), std::back_inserter(layers_));
    while (numbered.size() < layers_.size())
      numbered.push_back({static_cast<int>(numbered.size()), layers_[numbered.size()].get(), stage_map.rank_of(stage)});
  }
  parameters_ =
      std::make_shared<ModelParameters>(numbered, context.rank, context.layout, model.ties(), types, sharding);
}

void ModelDescription::check_parameters(int number, const Layer& layer) const {
  const auto alike = [](const ParamSpec& a, const ParamSpec& b) {
    return a.name == b.name && a.global == b.global && a.local == b.local && a.cuts == b.cuts && a.partial == b.partial;
  };
  require_of_model(std::ranges::equal(layer.params(), this->layer(number).params(), alike),
                   "layer {}: {} has other parameters on another pipeline rank", number, layer.name());
}

} // namespace triax::executor
