// SPDX-License-Identifier: Apache-2.0
// Shared by the layers of this model: its sizes, GPT-2's constants, and a base class that stores a layer's
// descriptions.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <triax/hf_mapping.hpp>
#include <triax/model.hpp>
#include <triax/parallel.hpp>
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

/// Name of the token table in the embedding and in the head, which share it.
inline constexpr const char* kTokenTable = "tokens.weight";

/// Type of attention's log-sum-exp.
inline DType statistics_of(DType compute) {
  return compute == DType::f64 ? DType::f64 : DType::f32;
}

inline const TensorView& view(Views views, int index) {
  return views[static_cast<std::size_t>(index)];
}

/// Descriptions, and arguments of dropout. Each layer's constructor fills `parts_`, `inputs_` and `outputs_`.
class GptLayer : public Layer {
 public:
  GptLayer(const Sizes& sizes, const LayerContext& context, int index, std::string name)
      : sizes_(sizes),
        context_(context),
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
  NormOptions norm_options() const { return {.width = sizes_.hidden, .eps = sizes_.norm_eps}; }

  /// Of the residual stream, [rows, b, h]: the rows of this rank with sequence parallelism, else all of a call.
  Shape stream_shape() const { return {context_.own_rows(), context_.micro, sizes_.hidden}; }
  TensorSpec stream(DType compute, Life life = Life::forward_only) const {
    return {"hidden", stream_shape(), compute, life, context_.sequence_parallel};
  }

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
  LayerContext context_;
  int index_; // in the model
  std::string name_;
  PhiloxKey dropout_key_;
  LayerParts parts_;
  std::vector<TensorSpec> inputs_, outputs_;
};

std::unique_ptr<Layer> make_embedding(const Sizes& sizes, const LayerContext& context);
std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index);
std::unique_ptr<Layer> make_head(const Sizes& sizes, const LayerContext& context);

/// The tables of HfMapping for GPT2LMHeadModel.
HfArchitecture gpt2_architecture();
std::vector<HfParameter> gpt2_parameters(const Sizes& sizes);

} // namespace triax::model_gpt
