// SPDX-License-Identifier: Apache-2.0
// Attention as a list of primitives: one sample after another, all heads of a sample together.
//
// Scratch: the scores of one sample, a * sq * sk elements, once for the forward and twice for the backward; delta for
// the backward. With grouped queries, query head i reads key head i / group. The products of the j-th head of every
// group run as one batched gemm over the key heads, for j = 0, 1, ..., so that dk and dv are summed in the order of the
// query heads.
#pragma once

#include <algorithm>

#include "kernels/argument_check.hpp"
#include "kernels/expand.hpp"

namespace triax::kernels {

/// Heads j, j + group, ... of one sample of x [s, b, a, d], as matrices [heads, s, d].
inline TensorView head_matrices(const TensorView& x, std::int64_t sample, std::int64_t group, std::int64_t j) {
  const TensorView one = x.slice(1, sample, sample + 1).slice(2, j, x.size(2));
  return {one.data(),
          x.dtype(),
          {x.size(2) / group, x.size(0), x.size(3)},
          {x.stride(2) * group, x.stride(0), x.stride(3)}};
}

/// The same heads of scores [1, a, sq, sk].
inline TensorView score_matrices(const TensorView& scores, std::int64_t group, std::int64_t j) {
  const TensorView from = scores.slice(1, j, scores.size(1));
  return {from.data(),
          scores.dtype(),
          {scores.size(1) / group, scores.size(2), scores.size(3)},
          {scores.stride(1) * group, scores.stride(2), scores.stride(3)}};
}

/// The shared part of forward and backward: one sample's views, scores and dropout.
template <class Args>
struct SampleAttention {
  const Args& args;
  std::int64_t sample;
  std::int64_t group = args.q.size(2) / args.k.size(2);

  TensorView heads(const TensorView& x, std::int64_t j) const { return head_matrices(x, sample, group, j); }
  TensorView key_heads(const TensorView& x) const { return head_matrices(x, sample, 1, 0); }
  TensorView scores(const TensorView& x, std::int64_t j) const { return score_matrices(x, group, j); }

  /// products = q k^T.
  template <class Emit>
  void multiply(const TensorView& products, Emit& emit) const {
    for (std::int64_t j = 0; j < group; ++j) {
      emit(Gemm{.d = scores(products, j), .a = heads(args.q, j), .b = key_heads(args.k), .transpose_b = true});
    }
  }

  /// The sample's part of a [b, a, sq] view.
  TensorView statistics(const TensorView& x) const {
    return x.reshape({args.q.size(1), args.q.size(2), args.q.size(0)}).slice(0, sample, sample + 1);
  }

  Mask mask() const {
    Mask of_sample = args.mask;
    if (!of_sample.lengths.empty()) of_sample.lengths = of_sample.lengths.flat().slice(0, sample, sample + 1);
    return of_sample;
  }

  template <class Emit>
  void dropout(const TensorView& y, const TensorView& x, Emit& emit) const {
    Drop drop = args.drop;
    drop.samples = drop.samples.flat().slice(0, sample, sample + 1);
    drop.row0 = args.mask.q0;
    drop.column0 = args.mask.k0;
    emit(Dropout{y, x, drop});
  }
};

inline Shape score_shape(const TensorView& q, const TensorView& k) {
  return {1, q.size(2), q.size(0), k.size(0)};
}

/// Samples to expand: one in a dry run, because the primitives of all samples have the same shapes.
inline std::int64_t samples_of(const TensorView& q, const Scratch& scratch) {
  return scratch.plans() ? std::min<std::int64_t>(q.size(1), 1) : q.size(1);
}

template <class Emit>
void expand(const AttentionFwd& args, Scratch& scratch, Emit&& emit) {
  const TensorView p = scratch.take(args.q.dtype(), score_shape(args.q, args.k));
  const std::int64_t samples = samples_of(args.q, scratch);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const SampleAttention<AttentionFwd> one{args, sample};
    one.multiply(p, emit);
    emit(SoftmaxFwd{p, p, args.scale, one.mask(), one.statistics(args.lse)});
    if (args.drop.p > 0) one.dropout(p, p, emit);
    for (std::int64_t j = 0; j < one.group; ++j) {
      emit(Gemm{.d = one.heads(args.o, j), .a = one.scores(p, j), .b = one.key_heads(args.v)});
    }
  }
}

/// P: probabilities, D: dropout. dv = D(P)^T do; dS = scale P (D(do v^T) - delta); dq = dS k; dk = dS^T q.
template <class Emit>
void expand(const AttentionBwd& args, Scratch& scratch, Emit&& emit) {
  const Shape shape = score_shape(args.q, args.k);
  const TensorView p = scratch.take(args.q.dtype(), shape);
  const TensorView other = scratch.take(args.q.dtype(), shape); // probabilities after dropout, later gradients
  const TensorView delta =
      scratch.take(statistic_type(args.q.dtype()), {args.q.size(1), args.q.size(2), args.q.size(0)});
  const bool drops = args.drop.p > 0;
  // 1 adds to dk and dv, 0 overwrites them.
  const auto beta = [&](std::int64_t j) { return j == 0 && !args.add_kv ? 0.0 : 1.0; };
  const std::int64_t samples = samples_of(args.q, scratch);
  emit(AttentionDelta{delta, args.dout, args.o});
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const SampleAttention<AttentionBwd> one{args, sample};
    one.multiply(p, emit);
    emit(SoftmaxFromLse{p, p, one.statistics(args.lse), args.scale, one.mask()});
    if (drops) one.dropout(other, p, emit);
    for (std::int64_t j = 0; j < one.group; ++j) {
      emit(Gemm{.d = one.key_heads(args.dv),
                .a = one.scores(drops ? other : p, j),
                .b = one.heads(args.dout, j),
                .transpose_a = true,
                .beta = beta(j)});
    }
    for (std::int64_t j = 0; j < one.group; ++j) {
      emit(Gemm{
          .d = one.scores(other, j), .a = one.heads(args.dout, j), .b = one.key_heads(args.v), .transpose_b = true});
    }
    if (drops) one.dropout(other, other, emit);
    emit(SoftmaxBwd{other, other, p, args.scale, one.statistics(delta)});
    for (std::int64_t j = 0; j < one.group; ++j) {
      emit(Gemm{.d = one.heads(args.dq, j), .a = one.scores(other, j), .b = one.key_heads(args.k)});
      emit(Gemm{.d = one.key_heads(args.dk),
                .a = one.scores(other, j),
                .b = one.heads(args.q, j),
                .transpose_a = true,
                .beta = beta(j)});
    }
  }
}

} // namespace triax::kernels
