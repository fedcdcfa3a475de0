// SPDX-License-Identifier: Apache-2.0
// The parameters of a model of the Llama family, which cannot compute: grouped q, k and v in one parameter, gate and up
// in another, and a head that is tied or not.
#pragma once

#include <memory>
#include <string>
#include <triax/hf_mapping.hpp>
#include <triax/model.hpp>
#include <triax/parallel.hpp>
#include <triax/plugin.hpp>
#include <vector>

namespace triax::test_models {

struct GroupedSizes {
  std::int64_t layers, hidden, heads, kv_heads, inner;
  bool tied;
  std::int64_t head_dim() const { return hidden / heads; }
};

class ParameterLayer final : public Layer {
 public:
  ParameterLayer(std::string name, std::vector<ParamSpec> params)
      : name_(std::move(name)), params_(std::move(params)) {}
  std::string_view name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return params_; }
  std::span<const StashSpec> stash() const override { return {}; }
  std::span<const TensorSpec> inputs() const override { return {}; }
  std::span<const TensorSpec> outputs() const override { return {}; }
  Cost cost() const override { return {}; }
  void forward(const LayerCall&, Views, Views, Views, Views) override { fail(); }
  void backward_input(const LayerCall&, Views, Views, Views, Views, Views, Views) override { fail(); }
  void backward_weight(const LayerCall&, Views, Views, Views) override { fail(); }

 private:
  [[noreturn]] static void fail() { throw Error("model-grouped has parameters only"); }
  std::string name_;
  std::vector<ParamSpec> params_;
};

inline constexpr triax_option kOptions[] = {
    option_int("layers", nullptr, 1, 100, "blocks"),
    option_int("hidden", nullptr, 1, 1000, "width"),
    option_int("heads", nullptr, 1, 100, "query heads"),
    option_int("kv_heads", "0", 0, 100, "key heads; 0: as many as query heads"),
    option_int("inner", nullptr, 1, 1000, "width of the MLP"),
    option_bool("tied", "false", "the head is the token table"),
};

class Grouped : public Model, public HfMapping {
 public:
  explicit Grouped(const PluginContext& context)
      : sizes_{context.options.integer("layers"),   context.options.integer("hidden"), context.options.integer("heads"),
               context.options.integer("kv_heads"), context.options.integer("inner"),  context.options.flag("tied")} {
    if (sizes_.kv_heads == 0) sizes_.kv_heads = sizes_.heads;
    if (sizes_.tied) ties_ = {{0, "tokens.weight", count() - 1, "tokens.weight"}};
  }

  ModelInfo info() const override { return {static_cast<int>(sizes_.layers), 1, 8}; }
  Refusals supports(const ModelRequest&, const Layout&) const override { return {}; }
  int count() const override { return static_cast<int>(sizes_.layers) + 2; }
  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    const std::int64_t h = sizes_.hidden, d = sizes_.head_dim();
    const auto spec = [](const char* name, const Shape& shape) { return replicated(name, shape, {}, true); };
    if (index == 0)
      return std::make_unique<ParameterLayer>("embedding", std::vector{spec("tokens.weight", {context.vocab, h})});
    if (index == count() - 1)
      return std::make_unique<ParameterLayer>(
          "head", std::vector{spec("norm.weight", {h}), spec("tokens.weight", {context.vocab, h})});
    return std::make_unique<ParameterLayer>(
        "block " + std::to_string(index - 1),
        std::vector{spec("qkv.weight", {(sizes_.heads + 2 * sizes_.kv_heads) * d, h}),
                    spec("up.weight", {2, sizes_.inner, h}), spec("down.weight", {h, sizes_.inner})});
  }
  std::span<const Tie> ties() const override { return ties_; }
  double flops_per_sample(std::int64_t) const override { return 1; }

  void* extension(std::string_view id) noexcept override {
    return id == HfMapping::kExtension ? static_cast<HfMapping*>(this) : nullptr;
  }
  std::vector<HfArchitecture> architectures() const override {
    return {{.name = "GroupedForCausalLM",
             .model_type = "grouped",
             .keys = {{.key = "vocab_size", .option = "vocab"},
                      {.key = "hidden_size", .option = "hidden"},
                      {.key = "num_hidden_layers", .option = "layers"},
                      {.key = "num_attention_heads", .option = "heads"},
                      {.key = "num_key_value_heads", .option = "kv_heads", .absent = "null", .values = {{"null", "0"}}},
                      {.key = "intermediate_size", .option = "inner"},
                      {.key = "tie_word_embeddings", .option = "tied", .absent = "false"}},
             .optional_prefix = "model.",
             .copies = {{"lm_head.weight", "model.embed_tokens.weight"}}}};
  }
  std::vector<HfParameter> parameters(std::string_view) const override {
    const std::int64_t d = sizes_.head_dim();
    const std::string block = "model.layers.{}.";
    return {
        {.parameter = "embedding/tokens.weight", .tensors = {"model.embed_tokens.weight"}},
        {.parameter = "block {}/qkv.weight",
         .tensors = {block + "self_attn.q_proj.weight", block + "self_attn.k_proj.weight",
                     block + "self_attn.v_proj.weight"},
         .parts = {sizes_.heads * d, sizes_.kv_heads * d, sizes_.kv_heads * d},
         .groups = sizes_.kv_heads},
        {.parameter = "block {}/up.weight", .tensors = {block + "mlp.gate_proj.weight", block + "mlp.up_proj.weight"}},
        {.parameter = "block {}/down.weight", .tensors = {block + "mlp.down_proj.weight"}},
        {.parameter = "head/norm.weight", .tensors = {"model.norm.weight"}},
        {.parameter = "head/tokens.weight", .tensors = {"lm_head.weight"}}};
  }

 private:
  GroupedSizes sizes_;
  std::vector<Tie> ties_;
};

} // namespace triax::test_models
