// SPDX-License-Identifier: Apache-2.0
// Operation calls as data: checks shapes, and counts FLOPs and bytes.
//
// FLOPs are model FLOPs: matrix products only, a multiply-add counts two, a causal mask is not subtracted. The backward
// of attention counts five products, because it recomputes the scores. Bytes count each view once, and twice if the
// operation reads and writes it.
#include "kernels/argument_check.hpp"
#include "triax/kernels.hpp"

namespace triax {

namespace {

template <class... View>
double bytes_of_all(const View&... views) {
  return (0.0 + ... + (views.empty() ? 0.0 : static_cast<double>(views.bytes())));
}

/// The bytes of views that the operation reads and writes.
template <class... View>
double bytes_updated(const View&... views) {
  return 2 * bytes_of_all(views...);
}

double bytes(const Gemm& x) {
  return (x.beta == 0 ? bytes_of_all(x.d) : bytes_updated(x.d)) + bytes_of_all(x.a, x.b);
}
double bytes(const BiasAdd& x) {
  return bytes_of_all(x.y, x.x, x.bias);
}
double bytes(const BiasBwd& x) {
  return bytes_updated(x.dbias) + bytes_of_all(x.dy);
}
double bytes(const Add& x) {
  return bytes_of_all(x.y, x.a, x.b);
}
double bytes(const Dropout& x) {
  return bytes_of_all(x.y, x.x, x.drop.samples);
}
double bytes(const ActFwd& x) {
  return bytes_of_all(x.y, x.x);
}
double bytes(const ActBwd& x) {
  return bytes_of_all(x.dx, x.dy, x.x);
}
double bytes(const NormFwd& x) {
  return bytes_of_all(x.y, x.x, x.weight, x.bias, x.mean, x.rstd);
}
double bytes(const NormBwdInput& x) {
  return bytes_of_all(x.dx, x.dy, x.x, x.weight, x.mean, x.rstd, x.residual);
}
double bytes(const NormBwdWeight& x) {
  return bytes_updated(x.dweight, x.dbias) + bytes_of_all(x.dy, x.x, x.mean, x.rstd);
}
double bytes(const SoftmaxFwd& x) {
  return bytes_of_all(x.y, x.x, x.lse, x.mask.lengths);
}
double bytes(const SoftmaxBwd& x) {
  return bytes_of_all(x.dx, x.dy, x.y, x.delta);
}
double bytes(const SoftmaxFromLse& x) {
  return bytes_of_all(x.y, x.x, x.lse, x.mask.lengths);
}
double bytes(const AttentionDelta& x) {
  return bytes_of_all(x.delta, x.dout, x.o);
}
double bytes(const AttentionMerge& x) {
  return bytes_updated(x.o, x.lse) + bytes_of_all(x.o_more, x.lse_more);
}
double bytes(const Rope& x) {
  return bytes_of_all(x.y, x.x);
}
// Only the rows of the table that are looked up count: as many elements as y (or dy).
double bytes(const EmbedFwd& x) {
  return bytes_of_all(x.y, x.y, x.tokens);
}
double bytes(const EmbedBwd& x) {
  return bytes_of_all(x.dy, x.tokens) +
         2 * static_cast<double>(x.dy.elements()) * static_cast<double>(bytes_of(x.dtable.dtype()));
}
double bytes(const XentMax& x) {
  return bytes_of_all(x.max, x.logits);
}
double bytes(const XentSums& x) {
  return bytes_of_all(x.sum_exp, x.target_logit, x.logits, x.max, x.targets);
}
double bytes(const XentLoss& x) {
  return bytes_of_all(x.loss, x.sum_exp, x.target_logit);
}
double bytes(const XentBwd& x) {
  return bytes_updated(x.logits) + bytes_of_all(x.max, x.sum_exp, x.targets);
}
double bytes(const SumSquares& x) {
  return bytes_of_all(x.out, x.x);
}
double bytes(const StepControl& x) {
  return bytes_of_all(x.order, x.order, x.order, x.losses); // each index reads 8 bytes of `squares`, twice its own size
}
double bytes(const AdamW& x) {
  return bytes_updated(x.master, x.m, x.v) + bytes_of_all(x.gradient, x.working);
}
double bytes(const Sgd& x) {
  return bytes_updated(x.master, x.velocity) + bytes_of_all(x.gradient, x.working);
}
double bytes(const LinearFwd& x) {
  return bytes_of_all(x.y, x.z, x.x, x.w, x.bias);
}
double bytes(const LinearBwdInput& x) {
  return bytes_of_all(x.dx, x.dy, x.w, x.before);
}
double bytes(const LinearBwdWeight& x) {
  return bytes_updated(x.dw, x.dbias) + bytes_of_all(x.dy, x.x);
}
double bytes(const BiasDropoutAdd& x) {
  return bytes_of_all(x.y, x.x, x.bias, x.residual, x.drop.samples);
}
double bytes(const BiasDropoutAddNorm& x) {
  return bytes_of_all(x.y, x.normed, x.mean, x.rstd, x.x, x.bias, x.residual, x.weight, x.norm_bias, x.drop.samples);
}
double bytes(const AttentionFwd& x) {
  return bytes_of_all(x.o, x.lse, x.q, x.k, x.v, x.mask.lengths, x.drop.samples);
}
double bytes(const AttentionBwd& x) {
  return (x.add_kv ? bytes_updated(x.dk, x.dv) : bytes_of_all(x.dk, x.dv)) +
         bytes_of_all(x.dq, x.dout, x.q, x.k, x.v, x.o, x.lse, x.mask.lengths, x.drop.samples);
}
double bytes(const XentFused& x) {
  return bytes_of_all(x.loss, x.max, x.sum_exp, x.target_logit, x.logits, x.targets);
}
double bytes(const MultiAdamW& x) {
  double sum = 0;
  for (const AdamW& shard : x.shards) sum += bytes(shard);
  return sum;
}

/// FLOPs of one matrix product over the scores of all heads: 2 * b * a * sq * sk * d.
double attention_product(const TensorView& q, const TensorView& k) {
  return 2.0 * static_cast<double>(q.elements()) * static_cast<double>(k.size(0));
}

template <class Args>
double flops(const Args&) {
  return 0;
}
double flops(const Gemm& x) {
  return 2.0 * static_cast<double>(x.d.elements()) * static_cast<double>(x.a.size(x.transpose_a ? -2 : -1));
}
double flops(const LinearFwd& x) {
  return 2.0 * static_cast<double>(x.x.elements()) * static_cast<double>(x.w.size(0));
}
double flops(const LinearBwdInput& x) {
  return 2.0 * static_cast<double>(x.dy.elements()) * static_cast<double>(x.w.size(1));
}
double flops(const LinearBwdWeight& x) {
  return 2.0 * static_cast<double>(x.x.elements()) * static_cast<double>(x.dw.size(0));
}
double flops(const AttentionFwd& x) {
  return 2 * attention_product(x.q, x.k);
}
double flops(const AttentionBwd& x) {
  return 5 * attention_product(x.q, x.k);
}

} // namespace

std::string_view name_of(Op op) noexcept {
  switch (op) {
#define TRIAX_OP(Args, name) \
  case Op::name:             \
    return #name;
    TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP
  }
  return "unknown operation";
}

#define TRIAX_OP(Args, name)                            \
  OpCall call_of(const Args& args) {                    \
    kernels::check(args);                               \
    return {Op::name, &args, flops(args), bytes(args)}; \
  }
TRIAX_OPERATIONS(TRIAX_OP)
#undef TRIAX_OP

} // namespace triax
