// SPDX-License-Identifier: Apache-2.0
#include "llama_attention.hpp"

namespace triax::model_llama {

namespace {

constexpr int kQueries = 0, kKeys = 1;

std::vector<Norm> head_norms(LayerParts& parts, const LayerContext& context, const Sizes& sizes) {
  std::vector<Norm> out;
  if (!sizes.qk_norm) return out;
  NormOptions options{.kind = NormKind::rms, .width = sizes.head_size, .eps = sizes.norm_eps};
  options.heads = sizes.heads / context.tensor_size();
  out.emplace_back(parts, context, "attention.q_norm", options);
  options.heads = sizes.kv_heads / context.tensor_size();
  out.emplace_back(parts, context, "attention.k_norm", options);
  return out;
}

} // namespace

Attention::Attention(LayerParts& parts, const LayerContext& context, const Sizes& sizes)
    : micro_(context.micro),
      group_(sizes.group()),
      kv_heads_(sizes.kv_heads / context.tensor_size()),
      head_size_(sizes.head_size),
      rope_theta_(sizes.rope_theta),
      rope_scaling_(sizes.rope_scaling),
      qkv_(parts, context, "attention.qkv", sizes.hidden, (sizes.heads + 2 * sizes.kv_heads) * sizes.head_size,
           {.init = weight_init(), .bias = sizes.qkv_bias}),
      norms_(head_norms(parts, context, sizes)),
      projection_(parts, context, "attention.projection", sizes.heads * sizes.head_size, sizes.hidden,
                  {.init = residual_init(sizes.layers), .bias = false}) {
  const DType compute = context.compute;
  const std::int64_t rows = context.max_rows, heads = kv_heads_ * group_;
  const auto add = [&](const char* name, std::int64_t of_heads, Life life) {
    return parts.add(StashSpec{name, {rows, micro_, of_heads, head_size_}, compute, life});
  };
  const auto add_columns = [&](const char* name, std::int64_t of_heads, Life life) {
    return parts.add(StashSpec{name, {rows, micro_, of_heads * head_size_}, compute, life});
  };
  heads_in_ = add_columns("attention.qkv", heads + 2 * kv_heads_, Life::forward_only);
  q_ = add("attention.q", heads, Life::forward_to_input);
  if (context.purpose == Purpose::generate) {
    const Shape all{context.sequence, micro_, kv_heads_, head_size_};
    all_keys_ = parts.add(StashSpec{"attention.keys", all, compute, Life::sequence});
    all_values_ = parts.add(StashSpec{"attention.values", all, compute, Life::sequence});
  } else {
    k_ = add("attention.k", kv_heads_, Life::forward_to_input);
    v_ = add("attention.v", kv_heads_, Life::forward_to_input);
  }
  if (has_norms()) {
    before_norm_[kQueries] = add("attention.q before norm", heads, Life::forward_to_input);
    before_norm_[kKeys] = add("attention.k before norm", kv_heads_, Life::forward_to_input);
    dk_ = add("attention.dk", kv_heads_, Life::input_only);
  }
  const DType statistics = compute == DType::f64 ? DType::f64 : DType::f32;
  lse_ = parts.add(StashSpec{"attention.lse", {micro_, heads, rows}, statistics, Life::forward_to_input, 2});
  heads_out_ = add_columns("attention.out", heads, Life::forward_to_weight);
  dheads_out_ = add_columns("attention.dout", heads, Life::input_only);
  dq_ = add("attention.dq", heads, Life::input_only);
  dqkv_ = add_columns("attention.dqkv", heads + 2 * kv_heads_, Life::input_to_weight);
}

Attention::Qkv Attention::split_heads(const TensorView& qkv) const {
  const std::int64_t rows = qkv.size(0), d = head_size_, parts = group_ + 2;
  const TensorView groups = qkv.reshape({rows, micro_ * kv_heads_, parts, d});
  const TensorView columns = qkv.reshape({rows, micro_, kv_heads_, parts * d});
  return {groups.slice(2, 0, group_), columns.slice(3, group_ * d, (group_ + 1) * d),
          columns.slice(3, (group_ + 1) * d, parts * d)};
}

TensorView Attention::rows_of(const LayerCall& call, int cached, int own, Views stash) const {
  return generates() ? view(stash, cached).slice(0, call.rows.begin, call.rows.end()) : view(stash, own);
}

void Attention::rotate(const LayerCall& call, const TensorView& to, const TensorView& from, bool inverse) const {
  call.kernels.rope({.y = to,
                     .x = from,
                     .position0 = call.rows.begin,
                     .base = rope_theta_,
                     .inverse = inverse,
                     .scaling = rope_scaling_},
                    call.op());
}

void Attention::make_heads(const LayerCall& call, Views params, const TensorView& to, const TensorView& from, int which,
                           Views stash) const {
  if (!has_norms()) return rotate(call, to, from, false);
  call.device.copy(view(stash, before_norm_[which]).reshape(from.shape()), from, call.stream); // contiguous, for norms
  make_normed_heads(call, params, to, which, stash);
}

void Attention::make_normed_heads(const LayerCall& call, Views params, const TensorView& to, int which,
                                  Views stash) const {
  const TensorView before = view(stash, before_norm_[which]).reshape(to.shape());
  norms_[static_cast<std::size_t>(which)].forward(call, params, before, to, stash);
  rotate(call, to, to, false);
}

void Attention::recompute(const LayerCall& call, Views params, Views stash) const {
  if (!has_norms()) return;
  make_normed_heads(call, params, view(stash, q_), kQueries, stash);
  make_normed_heads(call, params, view(stash, k_), kKeys, stash);
}

void Attention::backward_heads(const LayerCall& call, Views params, const TensorView& to, const TensorView& gradient,
                               int which, Views stash, Views grads) const {
  if (!has_norms()) return rotate(call, to, gradient, true);
  rotate(call, gradient, gradient, true);
  const TensorView before = view(stash, before_norm_[which]).reshape(to.shape());
  norms_[static_cast<std::size_t>(which)].backward(call, params, before, gradient, {}, gradient, stash, grads);
  call.device.copy(to, gradient, call.stream);
}

RecomputeStep Attention::qkv_step(int normed) const {
  RecomputeStep out{"attention.qkv", {q_, k_, v_}, {normed}};
  if (!has_norms()) return out;
  for (const int which : {kQueries, kKeys}) {
    out.writes.push_back(before_norm_[which]);
    for (const int statistic : norms_[static_cast<std::size_t>(which)].statistics()) out.writes.push_back(statistic);
  }
  return out;
}

RecomputeStep Attention::norm_step() const {
  RecomputeStep out{"attention.heads.norm", {q_, k_}, {before_norm_[kQueries], before_norm_[kKeys]}};
  for (const Norm& norm : norms_)
    for (const int statistic : norm.statistics()) out.writes.push_back(statistic);
  return out;
}

void Attention::make_qkv(const LayerCall& call, Views params, const TensorView& x, Views stash) const {
  qkv_.forward(call, params, x, view(stash, heads_in_), {}, stash);
  const Qkv in = split_heads(view(stash, heads_in_));
  const TensorView& q = view(stash, q_);
  make_heads(call, params, q.reshape(in.q.shape()), in.q, kQueries, stash);
  make_heads(call, params, rows_of(call, all_keys_, k_, stash), in.k, kKeys, stash);
  call.device.copy(rows_of(call, all_values_, v_, stash), in.v, call.stream);
}

/// The cache of a generating layer has all rows of the sequence, so that products have the same shapes in each call;
/// the mask hides the rows after those of the call.
void Attention::attend(const LayerCall& call, Views stash) const {
  const TensorView& q = view(stash, q_);
  call.kernels.attention_fwd({.o = view(stash, heads_out_).reshape(q.shape()),
                              .lse = view(stash, lse_),
                              .q = q,
                              .k = view(stash, generates() ? all_keys_ : k_),
                              .v = view(stash, generates() ? all_values_ : v_),
                              .scale = scale(),
                              .mask = causal(call)},
                             call.op());
}

void Attention::backward_input(const LayerCall& call, Views params, const TensorView& x, const TensorView& dy,
                               const TensorView& dx, Views stash, Views grads) const {
  const TensorView &q = view(stash, q_), &dout = view(stash, dheads_out_), &dq = view(stash, dq_);
  projection_.backward_input(call, params, dy, dout, stash);
  const Qkv din = split_heads(view(stash, dqkv_));
  const TensorView dk = has_norms() ? view(stash, dk_) : din.k;
  call.kernels.attention_bwd({.dq = dq,
                              .dk = dk,
                              .dv = din.v,
                              .dout = dout.reshape(q.shape()),
                              .q = q,
                              .k = view(stash, k_),
                              .v = view(stash, v_),
                              .o = view(stash, heads_out_).reshape(q.shape()),
                              .lse = view(stash, lse_),
                              .scale = scale(),
                              .mask = causal(call)},
                             call.op());
  backward_heads(call, params, din.q, dq.reshape(din.q.shape()), kQueries, stash, grads);
  backward_heads(call, params, din.k, dk, kKeys, stash, grads);
  qkv_.backward_input(call, params, x, view(stash, dqkv_), dx, stash);
}

void Attention::backward_weight(const LayerCall& call, const TensorView& x, const TensorView& dy, Views stash,
                                Views grads) const {
  projection_.backward_weight(call, view(stash, heads_out_), dy, stash, grads);
  qkv_.backward_weight(call, x, view(stash, dqkv_), stash, grads);
}

} // namespace triax::model_llama
