// SPDX-License-Identifier: Apache-2.0
// The layers of a model-llama for one rank, without memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/model.hpp"

namespace triax::model_llama_test {

struct Setting {
  std::int64_t layers = 2, hidden = 8, heads = 4, kv_heads = 0, head_size = 0, sequence = 5, inner = 0, vocab = 11;
  std::string rope_scaling = "none";
  double low_freq_factor = 1;
  bool qkv_bias = false, qk_norm = false, tied = false;
};

/// The plugin's object for a setting, with the objects that it refers to.
class LlamaModel {
 public:
  explicit LlamaModel(const Setting& setting)
      : context_{options_, null_log(), layout_},
        model_(plugin::create<Model>(plugin::load(test::plugin_file("model-llama"), "model"), with(setting))) {}
  Model& operator*() const { return *model_; }
  Model* operator->() const { return model_.get(); }

 private:
  const PluginContext& with(const Setting& setting) {
    options_.set("layers", setting.layers);
    options_.set("hidden", setting.hidden);
    options_.set("heads", setting.heads);
    options_.set("kv_heads", setting.kv_heads);
    options_.set("head_size", setting.head_size);
    options_.set("sequence", setting.sequence);
    options_.set("inner", setting.inner);
    options_.set("norm_eps", 1e-5);
    options_.set("rope_theta", 10000.0);
    options_.set("rope_scaling", setting.rope_scaling);
    options_.set("rope_factor", 8.0);
    options_.set("rope_low_freq_factor", setting.low_freq_factor);
    options_.set("rope_high_freq_factor", 4.0);
    options_.set("rope_original_sequence", std::int64_t{8192});
    options_.set("qkv_bias", setting.qkv_bias);
    options_.set("qk_norm", setting.qk_norm);
    options_.set("tied", setting.tied);
    return context_;
  }

  Options options_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  const PluginContext context_;
  plugin::Instance<Model> model_;
};

class LlamaLayers {
 public:
  explicit LlamaLayers(const Setting& setting, Purpose purpose = Purpose::train) : model_(setting) {
    const LayerContext context{.layout = layout_,
                               .vocab = setting.vocab,
                               .sequence = setting.sequence,
                               .max_rows = setting.sequence,
                               .purpose = purpose};
    for (int index = 0; index < model_->count(); ++index) layers_.push_back(model_->layer(index, context));
  }
  const std::vector<std::unique_ptr<Layer>>& all() const { return layers_; }
  Model& model() const { return *model_; }

  std::vector<std::string> parameters(std::size_t layer) const {
    std::vector<std::string> out;
    for (const ParamSpec& spec : layers_.at(layer)->params()) out.push_back(spec.name);
    return out;
  }
  const ParamSpec& parameter(std::size_t layer, std::string_view name) const {
    for (const ParamSpec& spec : layers_.at(layer)->params())
      if (spec.name == name) return spec;
    throw Error(text("layer {} has no parameter {}", layer, name));
  }

 private:
  const LlamaModel model_;
  const Layout layout_ = Layout::ptd(1, 1, 1);
  std::vector<std::unique_ptr<Layer>> layers_;
};

} // namespace triax::model_llama_test
