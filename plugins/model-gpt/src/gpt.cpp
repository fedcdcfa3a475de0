// SPDX-License-Identifier: Apache-2.0
// model-gpt: GPT-2 (Radford et al. 2019). Learned positions, pre-layer-norm, an MLP of 4h with tanh GeLU, tied
// embeddings, final layer norm.
#include "gpt.hpp"

#include <numeric>
#include <triax/plugin.hpp>

namespace triax::model_gpt {

namespace {

constexpr triax_option kOptions[] = {
    option_int("layers", nullptr, 1, 4096, "transformer blocks, l"),
    option_int("hidden", nullptr, 1, 1e6, "width of the residual stream, h"),
    option_int("heads", nullptr, 1, 1e6, "attention heads, a; each takes h/a columns"),
    option_int("sequence", nullptr, 1, 1e9, "tokens per sample, s"),
    option_float("dropout", "0.0", 0, 0.99, "dropout rate of embedding, attention and residual branches"),
};

/// Hint text such as "4 or 6": the nearest values below and above `number` for which `fits` returns true.
template <class Fits>
std::string nearest(std::int64_t number, std::int64_t limit, Fits fits) {
  std::string text;
  for (std::int64_t below = number - 1; below >= 1; --below) {
    if (!fits(below)) continue;
    text = std::to_string(below);
    break;
  }
  for (std::int64_t above = number + 1; above <= limit; ++above) {
    if (!fits(above)) continue;
    return (text.empty() ? "" : text + " or ") + std::to_string(above);
  }
  return text;
}

class Gpt final : public Model {
 public:
  explicit Gpt(const PluginContext& context)
      : sizes_{context.options.integer("layers"), context.options.integer("hidden"), context.options.integer("heads"),
               context.options.integer("sequence"), static_cast<float>(context.options.number("dropout"))},
        ties_{{0, kTokenTable, count() - 1, kTokenTable}} {}

  ModelInfo info() const override {
    return {.blocks = static_cast<int>(sizes_.layers), .first_block = 1, .sequence = sizes_.sequence};
  }

  Refusals supports(const ModelRequest& request, const Layout& layout) const override {
    const std::int64_t heads = sizes_.heads, hidden = sizes_.hidden, tensor = layout.tensor();
    Refusals out;
    if (hidden % heads != 0)
      out.add(
          make_refusal(ErrorCode::kNotDivisible, {"model.hidden", "model.heads"},
                       "model.hidden = {} is not divisible by model.heads = {}: each head has hidden / heads columns",
                       hidden, heads)
              .with_hint("use hidden {}, or heads {}",
                         nearest(hidden, hidden + heads, [&](auto h) { return h % heads == 0; }),
                         nearest(heads, hidden, [&](auto a) { return hidden % a == 0; })));
    if (heads % tensor != 0) {
      const std::string fits = nearest(heads, hidden, [&](auto a) { return a % tensor == 0 && hidden % a == 0; });
      out.add(
          make_refusal(ErrorCode::kNotDivisible, {"model.heads", "parallel.tensor"},
                       "model.heads = {} is not divisible by parallel.tensor = {}: each tensor rank has whole heads",
                       heads, tensor)
              .with_hint("use {}tensor {}", fits.empty() ? fits : text("heads {}, or ", fits),
                         nearest(tensor, heads, [&](auto t) { return heads % t == 0; })));
    }
    if (request.sequence_parallel && sizes_.sequence % tensor != 0)
      out.add(
          make_refusal(ErrorCode::kNotDivisible, {"model.sequence", "parallel.tensor", "parallel.sequence"},
                       "model.sequence = {} is not divisible by parallel.tensor = {}: with parallel.sequence each "
                       "tensor rank has as many positions",
                       sizes_.sequence, tensor)
              .with_hint("leave parallel.sequence out, or use sequence {}",
                         nearest(sizes_.sequence, sizes_.sequence + tensor, [&](auto s) { return s % tensor == 0; })));
    const auto all_have_tokens = [&](int t) { return vocab_range(request.vocab, t, t - 1).valid > 0; };
    if (!all_have_tokens(layout.tensor()))
      out.add(make_refusal(ErrorCode::kOutOfRange, {"model.vocab", "parallel.tensor"},
                           "model.vocab = {} over parallel.tensor = {} leaves a tensor rank without tokens",
                           request.vocab, tensor)
                  .with_hint("use tensor {}", nearest(tensor, tensor, [&](auto t) {
                               return heads % t == 0 && all_have_tokens(static_cast<int>(t));
                             })));
    if (!is_floating(request.compute))
      out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                           "model-gpt computes in a floating-point type, got {}", triax::name_of(request.compute)));
    return out;
  }

  int count() const override { return static_cast<int>(sizes_.layers) + 2; }

  std::unique_ptr<Layer> layer(int index, const LayerContext& context) const override {
    TRIAX_REQUIRE(index >= 0 && index < count(), "layer {} of a model of {} layers", index, count());
    if (index == 0) return make_embedding(sizes_, context);
    if (index == count() - 1) return make_head(sizes_, context);
    return make_block(sizes_, context, index);
  }

  std::span<const Tie> ties() const override { return ties_; }

  // Equation 3 of Narayanan et al., SC'21, without the forward that recomputation repeats: 72 instead of 96.
  double flops_per_sample(std::int64_t vocab) const override {
    const double s = static_cast<double>(sizes_.sequence), l = static_cast<double>(sizes_.layers),
                 h = static_cast<double>(sizes_.hidden), v = static_cast<double>(vocab);
    return 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  }

 private:
  Sizes sizes_;
  std::vector<Tie> ties_;
};

} // namespace

TRIAX_PLUGIN(triax::Model, Gpt, "model-gpt", "0.1.0", "GPT-2: learned positions, pre-layer-norm, tied embeddings",
             kOptions)

} // namespace triax::model_gpt
