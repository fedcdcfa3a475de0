// SPDX-License-Identifier: Apache-2.0
// model-gpt: GPT-2 (Radford et al. 2019). Learned positions, pre-layer-norm, an MLP with tanh GeLU, tied
// embeddings, final layer norm.
#include "gpt.hpp"

#include <triax/plugin.hpp>
#include <triax/training_options.hpp>

namespace triax::model_gpt {

namespace {

constexpr triax_option kOptions[] = {
    option_int("layers", nullptr, 1, 4096, "transformer blocks, l"),
    option_int("hidden", nullptr, 1, 1e6, "width of the residual stream, h"),
    option_int("heads", nullptr, 1, 1e6, "attention heads, a; each takes h/a columns"),
    option_int("sequence", nullptr, 1, 1e9, "tokens per sample, s"),
    option_int("inner", "0", 0, 1e7, "width of the MLP; 0: 4h"),
    option_float("norm_eps", "1e-5", 1e-12, 1, "added to the variance in norms"),
    option_float("dropout", "0.0", 0, 0.99, "dropout rate of embedding, attention and residual branches"),
};

Sizes sizes_of(const Options& options) {
  const std::int64_t hidden = options.integer("hidden"), inner = options.integer("inner");
  return {.layers = options.integer("layers"),
          .hidden = hidden,
          .heads = options.integer("heads"),
          .sequence = options.integer("sequence"),
          .inner = inner != 0 ? inner : 4 * hidden,
          .dropout = static_cast<float>(options.number("dropout")),
          .norm_eps = options.number("norm_eps")};
}

class Gpt final : public Model, public HfMapping, public TrainingOptions {
 public:
  explicit Gpt(const PluginContext& context)
      : sizes_(sizes_of(context.options)), ties_{{0, kTokenTable, count() - 1, kTokenTable}} {}

  ModelInfo info() const override {
    return {.blocks = static_cast<int>(sizes_.layers), .first_block = 1, .sequence = sizes_.sequence};
  }

  Refusals supports(const ModelRequest& request, const Layout& layout) const override {
    const std::int64_t heads = sizes_.heads, hidden = sizes_.hidden, inner = sizes_.inner,
                       tensor = layout.tensor_size();
    Refusals out;
    if (hidden % heads != 0)
      out.add(
          make_refusal(ErrorCode::kNotDivisible, {"model.hidden", "model.heads"},
                       "model.hidden = {} is not divisible by model.heads = {}: each head has hidden / heads columns",
                       hidden, heads)
              .with_hint("use hidden {}, or heads {}",
                         nearest_values(hidden, hidden + heads, [&](auto h) { return h % heads == 0; }),
                         nearest_values(heads, hidden, [&](auto a) { return hidden % a == 0; })));
    if (heads % tensor != 0)
      out.add(
          make_refusal(ErrorCode::kNotDivisible, {"model.heads", "parallel.tensor"},
                       "model.heads = {} is not divisible by parallel.tensor = {}: each tensor rank has whole heads",
                       heads, tensor)
              .with_hint("use {}tensor {}", request.has_weights ? "" : other_heads(tensor), tensor_sizes(tensor)));
    if (inner % tensor != 0 && inner != 4 * hidden) // 4h is divisible if the heads are
      out.add(make_refusal(ErrorCode::kNotDivisible, {"model.inner", "parallel.tensor"},
                           "model.inner = {} is not divisible by parallel.tensor = {}: each tensor rank has as many "
                           "columns of the MLP",
                           inner, tensor)
                  .with_hint("use {}tensor {}", request.has_weights ? "" : other_inner(tensor), tensor_sizes(tensor)));
    out.add(shared_layer_refusals(request, layout, "model-gpt", sizes_.sequence, heads));
    return out;
  }

  int count() const override { return static_cast<int>(sizes_.layers) + 2; }

  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    TRIAX_REQUIRE(index >= 0 && index < count(), "layer {} of a model of {} layers", index, count());
    if (index == 0) return make_embedding(sizes_, context);
    if (index == count() - 1) return make_head(context, head_options(sizes_), index);
    return make_block(sizes_, context, index);
  }

  std::span<const Tie> ties() const override { return ties_; }

  // Equation 3 of Narayanan et al., SC'21, without the forward that recomputation repeats (72 instead of 96), and with
  // an MLP of any width: 72 h^2 are 24 h^2 of attention and 12 h f.
  double flops_per_sample(std::int64_t vocab) const override {
    const double s = static_cast<double>(sizes_.sequence), l = static_cast<double>(sizes_.layers),
                 h = static_cast<double>(sizes_.hidden), f = static_cast<double>(sizes_.inner),
                 v = static_cast<double>(vocab);
    return s * l * (24 * h * h + 12 * h * f + 12 * s * h) + 6 * s * h * v;
  }

  void* extension(std::string_view id) noexcept override {
    if (id == TrainingOptions::kExtension) return static_cast<TrainingOptions*>(this);
    return id == HfMapping::kExtension ? static_cast<HfMapping*>(this) : nullptr;
  }
  std::vector<std::string> training_options() const override { return {"dropout"}; }
  std::vector<HfArchitecture> architectures() const override { return {gpt2_architecture()}; }
  std::vector<HfParameter> parameters(std::string_view) const override { return gpt2_parameters(sizes_); }

 private:
  /// "heads 4 or 6, or "; empty if none fit. A search of plans asks for many sizes: heads are tried only where some can
  /// fit.
  std::string other_heads(std::int64_t tensor) const {
    if (sizes_.hidden % tensor != 0) return {};
    const std::string fits =
        nearest_values(sizes_.heads, sizes_.hidden, [&](auto a) { return a % tensor == 0 && sizes_.hidden % a == 0; });
    return fits.empty() ? fits : text("heads {}, or ", fits);
  }
  std::string other_inner(std::int64_t tensor) const {
    return text("inner {}, or ",
                nearest_values(sizes_.inner, sizes_.inner + tensor, [&](auto f) { return f % tensor == 0; }));
  }
  /// The nearest numbers of tensor ranks that these sizes are divisible by.
  std::string tensor_sizes(std::int64_t tensor) const {
    const bool is_default_inner = sizes_.inner == 4 * sizes_.hidden;
    return nearest_values(tensor, sizes_.heads,
                          [&](auto t) { return sizes_.heads % t == 0 && (is_default_inner || sizes_.inner % t == 0); });
  }

  Sizes sizes_;
  std::vector<Tie> ties_;
};

} // namespace

TRIAX_PLUGIN(triax::Model, Gpt, "model-gpt", "0.1.0", "GPT-2: learned positions, pre-layer-norm, tied embeddings",
             kOptions)

} // namespace triax::model_gpt
