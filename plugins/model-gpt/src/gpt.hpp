// SPDX-License-Identifier: Apache-2.0
// Shared by the layers of this model: its sizes, GPT-2's constants, and the arguments of dropout.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <triax/hf_mapping.hpp>
#include <triax/model.hpp>
#include <triax/shared_layers.hpp>
#include <utility>
#include <vector>

namespace triax::model_gpt {

/// The [model] table.
struct Sizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, sequence = 0;
  std::int64_t inner = 0; // width of the MLP
  float dropout = 0;      // probability, the same for embedding, attention and residual branches
  double norm_eps = 1e-5;
  std::int64_t head_dim() const { return hidden / heads; }
  NormOptions norm_options() const { return {.width = hidden, .eps = norm_eps}; }
};

/// GPT-2's initial weights: normal with this standard deviation, divided by sqrt(2l) for the 2l projections that add to
/// the residual stream.
inline constexpr double kStd = 0.02;
inline Init weight_init() {
  return {Init::Kind::normal, kStd};
}
inline Init residual_init(std::int64_t layers) {
  return {Init::Kind::normal, kStd / std::sqrt(2.0 * static_cast<double>(layers))};
}

/// The options of the final norm and the logits.
inline VocabLayerOptions head_options(const Sizes& sizes) {
  return {.hidden = sizes.hidden, .init = weight_init(), .norm = sizes.norm_options()};
}

/// Type of attention's log-sum-exp.
inline DType statistics_of(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
}

inline const TensorView& view(Views views, int index) {
  return views[static_cast<std::size_t>(index)];
}

/// Arguments of dropout. Each layer's constructor fills its descriptions.
class GptLayer : public DescribedLayer {
 public:
  GptLayer(const Sizes& sizes, const LayerContext& context, int index, std::string name)
      : DescribedLayer(context, index, std::move(name), sizes.hidden),
        sizes_(sizes),
        dropout_key_(philox_key(context.seed, RandomPurpose::dropout)) {}

 protected:
  /// Arguments of the layer's n-th dropout, over rows of `width` columns.
  Drop drop(const LayerCall& call, std::uint32_t n, std::int64_t width) const {
    Drop drop;
    drop.p = call.dropout ? sizes_.dropout : 0;
    drop.key = dropout_key_;
    drop.site = static_cast<std::uint32_t>(index_) * 16 + n;
    drop.samples = call.samples;
    drop.row0 = context_.own(call.rows).begin;
    drop.rows = context_.sequence;
    drop.width = width;
    return drop;
  }

  Sizes sizes_;
  PhiloxKey dropout_key_;
};

std::unique_ptr<Layer> make_embedding(const Sizes& sizes, const LayerContext& context);
std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index);

/// The tables of HfMapping for GPT2LMHeadModel.
HfArchitecture gpt2_architecture();
std::vector<HfParameter> gpt2_parameters(const Sizes& sizes);

} // namespace triax::model_gpt
