// SPDX-License-Identifier: Apache-2.0
// A transformer block, pre-layer-norm: x + attention(norm(x)), then the same with the MLP. Heads and the MLP's columns
// are split over the tensor ranks. The linears of triax/parallel.hpp do the all-reduces: two forward, two backward.
#include <array>
#include <triax/cheap_recompute.hpp>
#include <triax/recompute_steps.hpp>

#include "gpt.hpp"

namespace triax::model_gpt {

namespace {

enum DropSite : std::uint32_t { kAttention, kAttentionResidual, kMlpResidual };

/// The parts of the forward, in its order. The two that compute what `projection` and `up` have written, too, need no
/// matrix product; the forward leaves them out.
enum Step : int { kFirstNorm, kQkv, kCore, kProjection, kSecondNorm, kUp, kGelu };

class Block final : public GptLayer, public CheapRecompute, public RecomputeSteps {
 public:
  Block(const Sizes& sizes, const LayerContext& context, int index);

  Cost cost() const override { return cost_; }
  void forward(const LayerCall& call, Views params, Views in, Views out, Views stash) override;
  void backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                      Views grads) override;
  void backward_weight(const LayerCall& call, Views in, Views stash, Views grads) override;

  void* extension(std::string_view id) noexcept override {
    if (id == CheapRecompute::kExtension) return static_cast<CheapRecompute*>(this);
    return id == RecomputeSteps::kExtension ? static_cast<RecomputeSteps*>(this) : nullptr;
  }
  std::span<const int> recomputed_stash() const override { return recomputed_; }
  void recompute(const LayerCall& call, Views params, Views in, Views stash) override;
  std::span<const RecomputeStep> steps() const override { return steps_; }
  void recompute_step(const LayerCall& call, int step, Views params, Views in, Views stash) override;

 private:
  /// q, k, v [s, b, a/t, d]: views of [s, b, 3h/t], whose columns are ordered [head, 3, d].
  struct Qkv {
    TensorView q, k, v;
  };
  Qkv split_heads(const TensorView& qkv) const;
  /// [s, b, h/t] seen as [s, b, a/t, d].
  TensorView by_head(const TensorView& tensor) const {
    return tensor.reshape({tensor.size(0), context_.micro, heads_, sizes_.head_dim()});
  }
  static Mask causal(const LayerCall& call) {
    Mask mask;
    mask.kind = Mask::Kind::causal;
    mask.q0 = call.rows.begin;
    return mask;
  }
  bool generates() const { return context_.purpose == Purpose::generate; }
  void list_steps();
  void attend(const LayerCall& call, Views stash) const;
  /// middle = in[0] + dropout(projection), and its norm.
  void project(const LayerCall& call, Views params, Views in, Views stash) const;
  void add_cache();
  void cache_keys(const LayerCall& call, Qkv& heads, Views stash) const;
  double scale() const { return 1 / std::sqrt(static_cast<double>(sizes_.head_dim())); }
  Drop attention_drop(const LayerCall& call) const {
    Drop drop = this->drop(call, kAttention, context_.sequence);
    drop.head0 = head0_;         // the first head of this tensor rank
    drop.row0 = call.rows.begin; // all queries
    return drop;
  }

  /// [s, b, columns], columns of this tensor rank.
  int add_columns(const char* name, std::int64_t columns, Life life) {
    return parts_.add(StashSpec{name, {context_.max_rows, context_.micro, columns}, compute_, life});
  }
  int add_stream(const char* name, Life life) { return parts_.add(StashSpec{name, stream_shape(), compute_, life}); }
  void backward_mlp(const LayerCall& call, Views params, const TensorView& dout, const TensorView& din, Views stash,
                    Views grads) const;
  void backward_attention(const LayerCall& call, Views params, Views in, const TensorView& din, Views stash,
                          Views grads) const;

  DType compute_;
  std::int64_t heads_, head0_; // of this tensor rank
  Norm norm1_;
  ColumnLinear qkv_;
  RowLinear projection_;
  Norm norm2_;
  ColumnLinear up_;
  RowLinear down_;
  Cost cost_;

  // Indices in the stash. Stashed by forward for the input gradient:
  int heads_in_, lse_, middle_, before_gelu_;
  // stashed by forward for the weight gradient:
  int normed1_, heads_out_, normed2_, after_gelu_;
  // used within forward only, the output of projection and of down:
  int sum_;
  // left by the input gradient for the weight gradient, the gradients of the outputs of the four linears:
  int dqkv_, dprojection_, dup_, ddown_;
  // kept from call to call when generating:
  int keys_ = -1, values_ = -1;
  // computed again without matrix products:
  std::array<int, 3> recomputed_{};
  std::vector<RecomputeStep> steps_; // by Step; empty when generating
};

Cost block_cost(const Sizes& sizes, const LayerContext& context) {
  const double b = static_cast<double>(context.micro), s = static_cast<double>(context.max_rows),
               h = static_cast<double>(sizes.hidden), f = static_cast<double>(sizes.inner), t = context.tensor_size();
  const double linears = 4 * b * s * h * (2 * h + f) / t; // 2 * (3h + h + f + f) h per token
  const double scores = 4 * b * s * s * h / t; // q k^T and p v; twice that for the input gradient, none for weights
  return {linears + scores, linears + 2 * scores, linears};
}

Block::Block(const Sizes& sizes, const LayerContext& context, int index)
    : GptLayer(sizes, context, index, "block " + std::to_string(index - 1)),
      compute_(context.compute),
      heads_(sizes.heads / context.tensor_size()),
      head0_(heads_ * context.tensor_rank()),
      norm1_(parts_, context, "attention.norm", sizes.norm_options()),
      qkv_(parts_, context, "attention.qkv", sizes.hidden, 3 * sizes.hidden, {.init = weight_init()}),
      projection_(parts_, context, "attention.projection", sizes.hidden, sizes.hidden,
                  {.init = residual_init(sizes.layers)}),
      norm2_(parts_, context, "mlp.norm", sizes.norm_options()),
      up_(parts_, context, "mlp.up", sizes.hidden, sizes.inner, {.init = weight_init(), .act = Activation::gelu_tanh}),
      down_(parts_, context, "mlp.down", sizes.inner, sizes.hidden, {.init = residual_init(sizes.layers)}),
      cost_(block_cost(sizes, context)) {
  const std::int64_t local = sizes.hidden / context.tensor_size(), inner = sizes.inner / context.tensor_size();
  // With sequence parallelism, the input gradient gathers for the weight gradient what the linears have parts of.
  const Life to_products = context.sequence_parallel ? Life::forward_to_input : Life::forward_to_weight;
  const Life of_products = context.sequence_parallel ? Life::input_only : Life::input_to_weight;
  heads_in_ = add_columns("attention.qkv", 3 * local, Life::forward_to_input);
  lse_ = parts_.add(StashSpec{
      "attention.lse", {context.micro, heads_, context.max_rows}, statistics_of(compute_), Life::forward_to_input, 2});
  middle_ = add_stream("middle", Life::forward_to_input);
  before_gelu_ = add_columns("mlp.before_gelu", inner, Life::forward_to_input);
  normed1_ = add_stream("attention.normed", to_products);
  heads_out_ = add_columns("attention.out", local, Life::forward_to_weight);
  normed2_ = add_stream("mlp.normed", to_products);
  after_gelu_ = add_columns("mlp.after_gelu", inner, Life::forward_to_weight);
  sum_ = add_stream("sum", Life::forward_only);
  dqkv_ = add_columns("attention.dqkv", 3 * local, Life::input_to_weight);
  dprojection_ = add_stream("attention.dprojection", of_products);
  dup_ = add_columns("mlp.dup", inner, Life::input_to_weight);
  ddown_ = add_stream("mlp.ddown", of_products);
  recomputed_ = {normed1_, normed2_, after_gelu_};
  if (generates())
    add_cache();
  else
    list_steps();
  inputs_ = {stream(Life::forward_to_input)};
  outputs_ = {stream()};
}

void Block::list_steps() {
  const auto with = [](std::vector<int> tensors, const Norm& norm) {
    for (const int statistic : norm.statistics()) tensors.push_back(statistic);
    return tensors;
  };
  steps_ = {{"attention.norm", with({normed1_}, norm1_), {}},
            {"attention.qkv", {heads_in_}, {normed1_}},
            {"attention", {heads_out_, lse_}, {heads_in_}},
            {"attention.projection", with({middle_, normed2_}, norm2_), {heads_out_}},
            {"mlp.norm", with({normed2_}, norm2_), {middle_}},
            {"mlp.up", {before_gelu_, after_gelu_}, {normed2_}},
            {"mlp.gelu", {after_gelu_}, {before_gelu_}}};
}

void Block::add_cache() {
  const Shape all{context_.sequence, context_.micro, heads_, sizes_.head_dim()};
  keys_ = parts_.add(StashSpec{"attention.keys", all, compute_, Life::sequence});
  values_ = parts_.add(StashSpec{"attention.values", all, compute_, Life::sequence});
}

/// Adds the call's keys and values to those of the sequence, which take their place. The views have all rows of the
/// sequence, so that products have the same shapes in each call; the mask hides the rows after those of the call.
void Block::cache_keys(const LayerCall& call, Qkv& heads, Views stash) const {
  for (const auto& [cache, added] : {std::pair(keys_, &heads.k), std::pair(values_, &heads.v)}) {
    const TensorView& all = view(stash, cache);
    call.device.copy(all.slice(0, call.rows.begin, call.rows.end()), *added, call.stream);
    *added = all;
  }
}

Block::Qkv Block::split_heads(const TensorView& qkv) const {
  const std::int64_t d = sizes_.head_dim();
  const TensorView heads = qkv.reshape({qkv.size(0), context_.micro, heads_, 3 * d});
  return {heads.slice(3, 0, d), heads.slice(3, d, 2 * d), heads.slice(3, 2 * d, 3 * d)};
}

void Block::attend(const LayerCall& call, Views stash) const {
  Qkv heads = split_heads(view(stash, heads_in_));
  if (generates()) cache_keys(call, heads, stash);
  call.kernels.attention_fwd({.o = by_head(view(stash, heads_out_)),
                              .lse = view(stash, lse_),
                              .q = heads.q,
                              .k = heads.k,
                              .v = heads.v,
                              .scale = scale(),
                              .mask = causal(call),
                              .drop = attention_drop(call)},
                             call.op());
}

void Block::project(const LayerCall& call, Views params, Views in, Views stash) const {
  projection_.forward(call, params, view(stash, heads_out_), view(stash, sum_), stash);
  BiasDropoutAddNorm middle = norm2_.fused(params, stash);
  middle.y = view(stash, middle_);
  middle.normed = view(stash, normed2_);
  middle.x = view(stash, sum_);
  middle.bias = view(params, projection_.bias());
  middle.residual = in[0];
  middle.drop = drop(call, kAttentionResidual, sizes_.hidden);
  call.kernels.bias_dropout_add_norm(middle, call.op());
}

void Block::recompute_step(const LayerCall& call, int step, Views params, Views in, Views stash) {
  switch (static_cast<Step>(step)) {
    case kFirstNorm:
      return norm1_.forward(call, params, in[0], view(stash, normed1_), stash);
    case kQkv:
      return qkv_.forward(call, params, view(stash, normed1_), view(stash, heads_in_), {}, stash);
    case kCore:
      return attend(call, stash);
    case kProjection:
      return project(call, params, in, stash);
    case kSecondNorm:
      return norm2_.forward(call, params, view(stash, middle_), view(stash, normed2_), stash);
    case kUp:
      return up_.forward(call, params, view(stash, normed2_), view(stash, after_gelu_), view(stash, before_gelu_),
                         stash);
    case kGelu:
      return call.kernels.act_fwd({Activation::gelu_tanh, view(stash, after_gelu_), view(stash, before_gelu_)},
                                  call.op());
  }
}

void Block::forward(const LayerCall& call, Views params, Views in, Views out, Views stash) {
  for (const Step step : {kFirstNorm, kQkv, kCore, kProjection, kUp}) recompute_step(call, step, params, in, stash);
  if (call.again) return; // the rest makes only the output
  down_.forward(call, params, view(stash, after_gelu_), view(stash, sum_), stash);
  call.kernels.bias_dropout_add({.y = out[0],
                                 .x = view(stash, sum_),
                                 .bias = view(params, down_.bias()),
                                 .residual = view(stash, middle_),
                                 .drop = drop(call, kMlpResidual, sizes_.hidden)},
                                call.op());
}

void Block::recompute(const LayerCall& call, Views params, Views in, Views stash) {
  for (const Step step : {kFirstNorm, kSecondNorm, kGelu}) recompute_step(call, step, params, in, stash);
}

void Block::backward_input(const LayerCall& call, Views params, Views in, Views dout, Views din, Views stash,
                           Views grads) {
  backward_mlp(call, params, dout[0], din[0], stash, grads);
  backward_attention(call, params, in, din[0], stash, grads);
}

// On return, din holds the gradient of `middle`.
void Block::backward_mlp(const LayerCall& call, Views params, const TensorView& dout, const TensorView& din,
                         Views stash, Views grads) const {
  const TensorView& ddown = view(stash, ddown_);
  const TensorView& dup = view(stash, dup_);
  call.kernels.dropout({ddown, dout, drop(call, kMlpResidual, sizes_.hidden)}, call.op());
  down_.backward_input(call, params, ddown, dup, stash, Activation::gelu_tanh, view(stash, before_gelu_));
  up_.backward_input(call, params, view(stash, normed2_), dup, din, stash);
  norm2_.backward(call, params, view(stash, middle_), din, dout, din, stash, grads);
}

void Block::backward_attention(const LayerCall& call, Views params, Views in, const TensorView& din, Views stash,
                               Views grads) const {
  // `middle` is not read after this point: its memory holds dheads_out, and then dnormed.
  const TensorView& dnormed = view(stash, middle_);
  const TensorView& heads_out = view(stash, heads_out_);
  const TensorView dheads_out = dnormed.flat().slice(0, 0, heads_out.elements()).reshape(heads_out.shape());

  const TensorView& dprojection = view(stash, dprojection_);
  call.kernels.dropout({dprojection, din, drop(call, kAttentionResidual, sizes_.hidden)}, call.op());
  projection_.backward_input(call, params, dprojection, dheads_out, stash);

  const Qkv heads = split_heads(view(stash, heads_in_));
  const Qkv dheads = split_heads(view(stash, dqkv_));
  call.kernels.attention_bwd({.dq = dheads.q,
                              .dk = dheads.k,
                              .dv = dheads.v,
                              .dout = by_head(dheads_out),
                              .q = heads.q,
                              .k = heads.k,
                              .v = heads.v,
                              .o = by_head(heads_out),
                              .lse = view(stash, lse_),
                              .scale = scale(),
                              .mask = causal(call),
                              .drop = attention_drop(call)},
                             call.op());
  qkv_.backward_input(call, params, view(stash, normed1_), view(stash, dqkv_), dnormed, stash);
  norm1_.backward(call, params, in[0], dnormed, din, din, stash, grads);
}

void Block::backward_weight(const LayerCall& call, Views, Views stash, Views grads) {
  down_.backward_weight(call, view(stash, after_gelu_), view(stash, ddown_), stash, grads);
  up_.backward_weight(call, view(stash, normed2_), view(stash, dup_), stash, grads);
  projection_.backward_weight(call, view(stash, heads_out_), view(stash, dprojection_), stash, grads);
  qkv_.backward_weight(call, view(stash, normed1_), view(stash, dqkv_), stash, grads);
}

} // namespace

std::unique_ptr<Layer> make_block(const Sizes& sizes, const LayerContext& context, int index) {
  return std::make_unique<Block>(sizes, context, index);
}

} // namespace triax::model_gpt
