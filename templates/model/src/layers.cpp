// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <cmath>
#include <string>
#include <triax/shared_layers.hpp>

namespace triax::model_template {

namespace {

const TensorView& view(Views views, int index) {
  return views[static_cast<std::size_t>(index)];
}

/// out = x + attention(norm(x)) + mlp(norm(x)). Heads and the MLP's columns are split over the tensor ranks: each
/// branch has one all-reduce forward and one backward, in the linear layers.
class Block final : public DescribedLayer {
 public:
  Block(const Sizes& sizes, const LayerContext& context, int index)
      : DescribedLayer(context, index, "block " + std::to_string(index - 1), sizes.hidden),
        sizes_(sizes),
        heads_(sizes.heads / context.tensor_size()),
        norm_(parts_, context, "norm", {.width = sizes.hidden}),
        qkv_(parts_, context, "attention.qkv", sizes.hidden, 3 * sizes.hidden, {.init = kWeightInit}),
        projection_(parts_, context, "attention.projection", sizes.hidden, sizes.hidden, {.init = kWeightInit}),
        up_(parts_, context, "mlp.up", sizes.hidden, 4 * sizes.hidden,
            {.init = kWeightInit, .act = Activation::gelu_tanh}),
        down_(parts_, context, "mlp.down", 4 * sizes.hidden, sizes.hidden, {.init = kWeightInit}) {
    const std::int64_t h = sizes.hidden, part = h / context.tensor_size();
    normed_ = add("normed", h, Life::forward_to_weight);
    heads_in_ = add("attention.qkv", 3 * part, Life::forward_to_input);
    lse_ = parts_.add(StashSpec{"attention.lse",
                                {context.micro, heads_, context.max_rows},
                                context.compute == DType::f64 ? DType::f64 : DType::f32,
                                Life::forward_to_input,
                                2});
    heads_out_ = add("attention.out", part, Life::forward_to_weight);
    before_gelu_ = add("mlp.before_gelu", 4 * part, Life::forward_to_input);
    after_gelu_ = add("mlp.after_gelu", 4 * part, Life::forward_to_weight);
    sum_ = add("sum", h, Life::forward_only);
    dout_ = add("dout", h, Life::input_to_weight);
    dqkv_ = add("attention.dqkv", 3 * part, Life::input_to_weight);
    dup_ = add("mlp.dup", 4 * part, Life::input_to_weight);
    dheads_out_ = add("attention.dout", part, Life::input_only);
    dnormed_ = add("dnormed", h, Life::input_only);
    inputs_ = {stream(Life::forward_to_input)};
    outputs_ = {stream()};
  }

  Cost cost() const override {
    const double b = static_cast<double>(context_.micro), s = static_cast<double>(context_.max_rows),
                 h = static_cast<double>(sizes_.hidden), t = context_.tensor_size();
    const double linears = 24 * b * s * h * h / t; // 2 * (3 + 1 + 4 + 4) h^2 per token
    const double scores = 4 * b * s * s * h / t;   // q k^T and p v; twice that for the input gradient
    return {linears + scores, linears + 2 * scores, linears};
  }

  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override {
    const TensorView &normed = view(stash, normed_), &sum = view(stash, sum_);
    norm_.forward(call, params, in[0], normed, stash);
    qkv_.forward(call, params, normed, view(stash, heads_in_), {}, stash);
    const Qkv heads = split_heads(view(stash, heads_in_));
    rotate(call, heads, false);
    call.kernels.attention_fwd({.o = by_head(view(stash, heads_out_)),
                                .lse = view(stash, lse_),
                                .q = heads.q,
                                .k = heads.k,
                                .v = heads.v,
                                .scale = scale(),
                                .mask = causal(call)},
                               call.op());
    up_.forward(call, params, normed, view(stash, after_gelu_), view(stash, before_gelu_), stash);
    if (call.again) return; // the rest makes only the output
    projection_.forward(call, params, view(stash, heads_out_), sum, stash);
    call.kernels.bias_dropout_add({out[0], sum, view(params, projection_.bias()), in[0]}, call.op());
    down_.forward(call, params, view(stash, after_gelu_), sum, stash);
    call.kernels.bias_dropout_add({out[0], sum, view(params, down_.bias()), out[0]}, call.op());
  }

  void backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                      Views grads) override {
    const TensorView &normed = view(stash, normed_), &dnormed = view(stash, dnormed_), &dup = view(stash, dup_);
    call.device.copy(view(stash, dout_), dout[0], call.stream); // for the weight gradients of both branches
    // The MLP's part of the norm's gradient is in din, attention's in dnormed.
    down_.backward_input(call, params, dout[0], dup, stash, Activation::gelu_tanh, view(stash, before_gelu_));
    up_.backward_input(call, params, normed, dup, din[0], stash);
    projection_.backward_input(call, params, dout[0], view(stash, dheads_out_), stash);
    backward_attention(call, stash);
    qkv_.backward_input(call, params, normed, view(stash, dqkv_), dnormed, stash);
    call.kernels.add({din[0], din[0], dnormed}, call.op());
    norm_.backward(call, params, in[0], din[0], dout[0], din[0], stash, grads); // adds dout: the residual connection
  }

  void backward_weight(const LayerCall& call, Views, Views stash, Views grads) override {
    down_.backward_weight(call, view(stash, after_gelu_), view(stash, dout_), stash, grads);
    up_.backward_weight(call, view(stash, normed_), view(stash, dup_), stash, grads);
    projection_.backward_weight(call, view(stash, heads_out_), view(stash, dout_), stash, grads);
    qkv_.backward_weight(call, view(stash, normed_), view(stash, dqkv_), stash, grads);
  }

 private:
  /// A tensor [s, b, columns] that the layer keeps; returns its index in the stash.
  int add(const char* name, std::int64_t columns, Life life) {
    return parts_.add(StashSpec{name, {context_.max_rows, context_.micro, columns}, context_.compute, life});
  }

  /// Views of [s, b, 3h/t], whose columns are ordered [head, 3, d]: [s, b, a/t, d] each.
  struct Qkv {
    TensorView q, k, v;
  };
  Qkv split_heads(const TensorView& qkv) const {
    const std::int64_t d = sizes_.head_dim();
    const TensorView heads = qkv.reshape({qkv.size(0), context_.micro, heads_, 3 * d});
    return {heads.slice(3, 0, d), heads.slice(3, d, 2 * d), heads.slice(3, 2 * d, 3 * d)};
  }
  TensorView by_head(const TensorView& tensor) const {
    return tensor.reshape({tensor.size(0), context_.micro, heads_, sizes_.head_dim()});
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(sizes_.head_dim())); }
  static Mask causal(const LayerCall& call) { return {.kind = Mask::Kind::causal, .q0 = call.rows.begin}; }

  /// Rotates queries and keys in place; the backward is the inverse.
  static void rotate(const LayerCall& call, const Qkv& heads, bool inverse) {
    for (const TensorView& x : {heads.q, heads.k})
      call.kernels.rope({.y = x, .x = x, .position0 = call.rows.begin, .inverse = inverse}, call.op());
  }

  void backward_attention(const LayerCall& call, Views stash) const {
    const Qkv heads = split_heads(view(stash, heads_in_)), dheads = split_heads(view(stash, dqkv_));
    call.kernels.attention_bwd({.dq = dheads.q,
                                .dk = dheads.k,
                                .dv = dheads.v,
                                .dout = by_head(view(stash, dheads_out_)),
                                .q = heads.q,
                                .k = heads.k,
                                .v = heads.v,
                                .o = by_head(view(stash, heads_out_)),
                                .lse = view(stash, lse_),
                                .scale = scale(),
                                .mask = causal(call)},
                               call.op());
    rotate(call, dheads, true);
  }

  Sizes sizes_;
  std::int64_t heads_; // of this tensor rank
  Norm norm_;
  ColumnLinear qkv_;
  RowLinear projection_;
  ColumnLinear up_;
  RowLinear down_;
  // Indices in the stash. How long each tensor is kept: Life, in the constructor.
  int normed_, heads_in_, lse_, heads_out_, before_gelu_, after_gelu_, sum_;
  int dout_, dqkv_, dup_, dheads_out_, dnormed_;
};

} // namespace

std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index) {
  return std::make_unique<Block>(sizes, context, index);
}

} // namespace triax::model_template
