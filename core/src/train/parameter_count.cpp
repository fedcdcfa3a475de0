// SPDX-License-Identifier: Apache-2.0
#include "train/parameter_count.hpp"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::train {

namespace {

std::unique_ptr<Layer> created_layer(const Model& model, int number, const LayerContext& context) {
  return call_plugin("layer", typeid(model), [&] {
    std::unique_ptr<Layer> out = model.layer(number, context);
    if (!out) throw Error(text("the model returns no layer {}", number));
    return out;
  });
}

void ask(const Layer& layer) {
  call_plugin("name", typeid(layer), [&layer] { layer.name(); });
  call_plugin("params", typeid(layer), [&layer] { layer.params(); });
  call_plugin("stash", typeid(layer), [&layer] { layer.stash(); });
  call_plugin("inputs", typeid(layer), [&layer] { layer.inputs(); });
  call_plugin("outputs", typeid(layer), [&layer] { layer.outputs(); });
  call_plugin("cost", typeid(layer), [&layer] { layer.cost(); });
}

} // namespace

std::int64_t parameter_count(const Model& model, const LayerContext& context) {
  std::set<std::pair<int, std::string>> tied;
  call_plugin("ties", typeid(model), [&] {
    for (const Tie& tie : model.ties()) tied.insert({tie.layer_b, tie.param_b});
  });
  std::int64_t out = 0;
  for (int number = 0; number < model.count(); ++number) {
    const std::unique_ptr<Layer> layer = created_layer(model, number, context);
    ask(*layer);
    for (const ParamSpec& spec : layer->params())
      if (!tied.contains({number, spec.name})) out += spec.global.elements();
  }
  return out;
}

} // namespace triax::train
