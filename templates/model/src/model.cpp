// SPDX-License-Identifier: Apache-2.0
// model-template: a GPT whose blocks compute attention and MLP side by side, from one norm (Wang & Komatsuzaki,
// "GPT-J-6B", 2021), with rotary positions (Su et al. 2021). Embedding and head have a table each.
#include <span>
#include <triax/plugin.hpp>
#include <triax/shared_layers.hpp>

#include "layers.hpp"

namespace triax::model_template {

namespace {

// vocab is a key of the core, which passes it with the request and in LayerContext.
constexpr triax_option kOptions[] = {
    option_int("layers", nullptr, 1, 4096, "transformer blocks, l"),
    option_int("hidden", nullptr, 1, 1e6, "width of the residual stream, h"),
    option_int("heads", nullptr, 1, 1e6, "attention heads, a; each takes h/a columns"),
    option_int("sequence", nullptr, 1, 1e9, "tokens per sample, s"),
};

class ParallelGpt final : public Model {
 public:
  // Only stores arguments. The options are already parsed and checked.
  explicit ParallelGpt(const PluginContext& context)
      : sizes_{context.options.integer("layers"), context.options.integer("hidden"), context.options.integer("heads"),
               context.options.integer("sequence")} {}

  ModelInfo info() const override {
    return {.blocks = static_cast<int>(sizes_.layers), .first_block = 1, .sequence = sizes_.sequence};
  }

  // Called before training starts. All reasons at once, so that none hides another.
  Refusals supports(const ModelRequest& request, const Layout& layout) const override {
    const std::int64_t tensor = layout.tensor_size();
    Refusals out;
    if (sizes_.hidden % (2 * sizes_.heads) != 0)
      out.add(make_refusal(ErrorCode::kNotDivisible, {"model.hidden", "model.heads"},
                           "model.hidden = {} is not divisible by 2 model.heads = {}: rotary positions turn pairs of a "
                           "head's columns",
                           sizes_.hidden, 2 * sizes_.heads)
                  .with_hint("use hidden {}", (sizes_.hidden / (2 * sizes_.heads) + 1) * 2 * sizes_.heads));
    if (sizes_.heads % tensor != 0)
      out.add(
          make_refusal(ErrorCode::kNotDivisible, {"model.heads", "parallel.tensor"},
                       "model.heads = {} is not divisible by parallel.tensor = {}: each tensor rank has whole heads",
                       sizes_.heads, tensor)
              .with_hint("use tensor {}",
                         nearest_values(tensor, sizes_.heads, [&](auto t) { return sizes_.heads % t == 0; })));
    if (request.sequence_parallel)
      out.add(make_refusal(ErrorCode::kUnsupported, {"parallel.sequence"},
                           "model-template keeps all positions on each tensor rank")
                  .with_hint("leave parallel.sequence out"));
    if (request.purpose == Purpose::generate)
      out.add(make_refusal(ErrorCode::kUnsupported, {"model.plugin"},
                           "model-template keeps no keys and values, so it does not generate")
                  .with_hint("write a model that generates: share/doc/triax/docs/plugins/writing.md says how"));
    out.add(shared_layer_refusals(request, layout, "model-template", sizes_.sequence, sizes_.heads));
    return out;
  }

  int count() const override { return static_cast<int>(sizes_.layers) + 2; }

  // Called for the layers of this rank's stages, first for a dry run, then to train.
  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    TRIAX_REQUIRE(index >= 0 && index < count(), "layer {} of a model of {} layers", index, count());
    // The first and the last layer are those of most models: a token table, and norm, logits and loss.
    const VocabLayerOptions vocab{.hidden = sizes_.hidden, .init = kWeightInit, .norm = {.width = sizes_.hidden}};
    if (index == 0) return make_token_embedding(context, vocab);
    if (index == count() - 1) return make_head(context, vocab, index);
    return make_block(sizes_, context, index);
  }

  std::span<const Tie> ties() const override { return {}; }

  // Equation 3 of Narayanan et al., SC'21, without the forward that recomputation repeats: 72 instead of 96.
  double flops_per_sample(std::int64_t vocab) const override {
    const double s = static_cast<double>(sizes_.sequence), l = static_cast<double>(sizes_.layers),
                 h = static_cast<double>(sizes_.hidden), v = static_cast<double>(vocab);
    return 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  }

 private:
  Sizes sizes_;
};

} // namespace

} // namespace triax::model_template

TRIAX_PLUGIN(triax::Model, triax::model_template::ParallelGpt, "model-template", "0.1.0",
             "GPT with attention and MLP side by side, rotary positions", triax::model_template::kOptions)
