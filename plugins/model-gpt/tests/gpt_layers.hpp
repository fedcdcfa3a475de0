// SPDX-License-Identifier: Apache-2.0
// The layers of a model-gpt for one rank, without memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/model.hpp"

namespace triax::model_gpt_test {

struct Setting {
  std::int64_t layers = 2, hidden = 8, heads = 4, sequence = 5, vocab = 11;
  std::int64_t inner = 0; // 0: 4h
  double norm_eps = 1e-5, dropout = 0;
};

/// The plugin's object for a setting, with the objects that it refers to.
class GptModel {
 public:
  explicit GptModel(const Setting& setting)
      : context_{options_, null_log(), layout_},
        model_(plugin::create<Model>(plugin::load(test::plugin_file("model-gpt"), "model"), with(setting))) {}
  Model& operator*() const { return *model_; }
  Model* operator->() const { return model_.get(); }

 private:
  const PluginContext& with(const Setting& setting) {
    options_.set("layers", setting.layers);
    options_.set("hidden", setting.hidden);
    options_.set("heads", setting.heads);
    options_.set("sequence", setting.sequence);
    options_.set("inner", setting.inner);
    options_.set("norm_eps", setting.norm_eps);
    options_.set("dropout", setting.dropout);
    return context_;
  }

  Options options_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  const PluginContext context_;
  plugin::Instance<Model> model_;
};

class GptLayers {
 public:
  explicit GptLayers(const Setting& setting, Purpose purpose = Purpose::train) : model_(setting) {
    const LayerContext context{.layout = layout_,
                               .vocab = setting.vocab,
                               .sequence = setting.sequence,
                               .max_rows = setting.sequence,
                               .purpose = purpose};
    for (int index = 0; index < model_->count(); ++index) layers_.push_back(model_->layer(index, context));
  }
  const std::vector<std::unique_ptr<Layer>>& all() const { return layers_; }
  Model& model() const { return *model_; }

  const ParamSpec& parameter(std::size_t layer, std::string_view name) const {
    for (const ParamSpec& spec : layers_.at(layer)->params())
      if (spec.name == name) return spec;
    throw Error(text("layer {} has no parameter {}", layer, name));
  }

 private:
  const GptModel model_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  std::vector<std::unique_ptr<Layer>> layers_;
};

} // namespace triax::model_gpt_test
