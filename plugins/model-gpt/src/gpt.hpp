// What the layers of this model share: its sizes, the fixed numbers of GPT-2, and a base that keeps descriptions.
//
// Threads, ownership, blocking: as triax/model.hpp says for layers.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <triax/model.hpp>
#include <triax/parallel.hpp>
#include <utility>
#include <vector>

namespace triax::gpt {

/// The [model] table.
struct Sizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, sequence = 0;
  float dropout = 0; // of embedding, attention and residuals alike
  std::int64_t head_dim() const { return hidden / heads; }
};

/// Initial weights: normal with this standard deviation, smaller where 2l sublayers add to the residual stream.
inline constexpr double kStd = 0.02;
inline Init weight_init() {
  return {Init::Kind::normal, kStd};
}
inline Init residual_init(std::int64_t layers) {
  return {Init::Kind::normal, kStd / std::sqrt(2.0 * static_cast<double>(layers))};
}

inline constexpr double kNormEps = 1e-5;

/// The parameter that embedding and head share, under one name in both.
inline constexpr const char* kTokenTable = "tokens.weight";

/// What is stashed by forward can be had again by another forward; what I leaves for W cannot.
inline StashSpec stash(std::string name, const Shape& shape, DType dtype, Life life) {
  return {std::move(name), shape, dtype, life, life == Life::forward_to_input || life == Life::forward_to_weight};
}

/// The type of norms' statistics and attention's log-sum-exp.
inline DType statistics_of(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
}

inline const TensorView& view(Views views, int index) {
  return views[static_cast<std::size_t>(index)];
}

/// Descriptions and the numbers of dropout; each layer fills `parts_`, `inputs_` and `outputs_` when it is made.
class GptLayer : public Layer {
 public:
  GptLayer(const Sizes& sizes, const LayerContext& context, int index, std::string name)
      : sizes_(sizes),
        micro_(context.micro),
        index_(index),
        name_(std::move(name)),
        dropout_key_(philox_key(context.seed, RandomPurpose::dropout)) {
    parts_.site0 = static_cast<std::uint32_t>(index) * 16;
  }

  std::string_view name() const override { return name_; }
  std::span<const ParamSpec> params() const override { return parts_.params; }
  std::span<const StashSpec> stash() const override { return parts_.stash; }
  std::span<const TensorSpec> inputs() const override { return inputs_; }
  std::span<const TensorSpec> outputs() const override { return outputs_; }

 protected:
  /// [s, b, columns]
  Shape stream_shape(std::int64_t columns) const { return {sizes_.sequence, micro_, columns}; }

  /// The n-th dropout of the layer, over rows of `width` columns that begin at head `head0`.
  Drop drop(const LayerCall& call, std::uint32_t n, std::int64_t width, std::int64_t head0 = 0) const {
    Drop drop;
    drop.p = call.dropout ? sizes_.dropout : 0;
    drop.key = dropout_key_;
    drop.site = static_cast<std::uint32_t>(index_) * 16 + n;
    drop.samples = call.samples;
    drop.head0 = head0;
    drop.rows = sizes_.sequence;
    drop.width = width;
    return drop;
  }

  Sizes sizes_;
  std::int64_t micro_;
  int index_; // in the model
  std::string name_;
  PhiloxKey dropout_key_;
  LayerParts parts_;
  std::vector<TensorSpec> inputs_, outputs_;
};

std::unique_ptr<Layer> make_embedding(const Sizes& sizes, const LayerContext& context);
std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index);
std::unique_ptr<Layer> make_head(const Sizes& sizes, const LayerContext& context);

} // namespace triax::gpt
