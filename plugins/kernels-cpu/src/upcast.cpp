// SPDX-License-Identifier: Apache-2.0
// Which views each operation reads, writes and updates.
#include "upcast.hpp"

#include <algorithm>

namespace triax::kernels_cpu {

TensorView Widening::add(const TensorView& view, bool load, bool store) {
  if (view.empty() || !is_half(view.dtype())) return view;
  TRIAX_REQUIRE(std::max(load_count_, store_count_) < kMax, "an operation has more than {} views of 16 bits", kMax);
  const TensorView wide(data_, DType::f32, view.shape());
  const std::size_t bytes = Arena::aligned(wide.bytes());
  taken_ += bytes;
  if (data_) {
    data_ += bytes;
    left_ -= bytes;
  }
  if (load) loads_[load_count_++] = {view, wide};
  if (store) stores_[store_count_++] = {view, wide};
  return wide;
}

Gemm widened(const Gemm& args, Widening& to) {
  Gemm wide = args;
  wide.a = to.read(args.a);
  wide.b = to.read(args.b);
  wide.d = args.beta == 0 ? to.write(args.d) : to.update(args.d);
  return wide;
}
BiasAdd widened(const BiasAdd& args, Widening& to) {
  return {to.write(args.y), to.read(args.x), to.read(args.bias)};
}
BiasBwd widened(const BiasBwd& args, Widening& to) {
  return {to.update(args.dbias), to.read(args.dy)};
}
Add widened(const Add& args, Widening& to) {
  return {to.write(args.y), to.read(args.a), to.read(args.b)};
}
Dropout widened(const Dropout& args, Widening& to) {
  return {to.write(args.y), to.read(args.x), args.drop};
}
ActFwd widened(const ActFwd& args, Widening& to) {
  return {args.act, to.write(args.y), to.read(args.x)};
}
ActBwd widened(const ActBwd& args, Widening& to) {
  return {args.act, to.write(args.dx), to.read(args.dy), to.read(args.x)};
}
NormFwd widened(const NormFwd& args, Widening& to) {
  return {args.kind,          to.write(args.y), to.read(args.x), to.read(args.weight),
          to.read(args.bias), args.mean,        args.rstd,       args.eps};
}
NormBwdInput widened(const NormBwdInput& args, Widening& to) {
  return {args.kind, to.write(args.dx), to.read(args.dy),      to.read(args.x), to.read(args.weight),
          args.mean, args.rstd,         to.read(args.residual)};
}
NormBwdWeight widened(const NormBwdWeight& args, Widening& to) {
  return {args.kind, to.update(args.dweight), to.update(args.dbias), to.read(args.dy), to.read(args.x), args.mean,
          args.rstd};
}
SoftmaxFwd widened(const SoftmaxFwd& args, Widening& to) {
  return {to.write(args.y), to.read(args.x), args.scale, args.mask, args.lse};
}
SoftmaxBwd widened(const SoftmaxBwd& args, Widening& to) {
  return {to.write(args.dx), to.read(args.dy), to.read(args.y), args.scale, args.delta};
}
SoftmaxFromLse widened(const SoftmaxFromLse& args, Widening& to) {
  return {to.write(args.y), to.read(args.x), args.lse, args.scale, args.mask};
}
AttentionDelta widened(const AttentionDelta& args, Widening& to) {
  return {args.delta, to.read(args.dout), to.read(args.o)};
}
AttentionMerge widened(const AttentionMerge& args, Widening& to) {
  return {to.update(args.o), args.lse, to.read(args.o_more), args.lse_more};
}
Rope widened(const Rope& args, Widening& to) {
  return {to.write(args.y), to.read(args.x), args.position0, args.base, args.inverse};
}
EmbedFwd widened(const EmbedFwd& args, Widening&) {
  return args; // copies rows of any type
}
EmbedBwd widened(const EmbedBwd& args, Widening& to) {
  return {to.update(args.dtable), to.read(args.dy), args.tokens, args.begin, args.valid};
}
XentMax widened(const XentMax& args, Widening& to) {
  return {args.max, to.read(args.logits), args.valid};
}
XentSums widened(const XentSums& args, Widening& to) {
  return {args.sum_exp, args.target_logit, to.read(args.logits), args.max, args.targets, args.begin, args.valid};
}
XentLoss widened(const XentLoss& args, Widening&) {
  return args;
}
XentBwd widened(const XentBwd& args, Widening& to) {
  XentBwd wide = args;
  wide.logits = to.update(args.logits);
  return wide;
}
SumSquares widened(const SumSquares& args, Widening& to) {
  return {args.out, to.read(args.x)};
}
Scale widened(const Scale& args, Widening& to) {
  return {to.update(args.x), args.factor};
}
Nonfinite widened(const Nonfinite& args, Widening& to) {
  return {args.count, to.read(args.x)};
}
StepControl widened(const StepControl& args, Widening&) {
  return args;
}

// The optimizers convert the working copy themselves.
AdamW widened(const AdamW& args, Widening&) {
  return args;
}
Sgd widened(const Sgd& args, Widening&) {
  return args;
}
MultiAdamW widened(const MultiAdamW& args, Widening&) {
  return args;
}

LinearFwd widened(const LinearFwd& args, Widening& to) {
  return {to.write(args.y), to.write(args.z), to.read(args.x), to.read(args.w), to.read(args.bias), args.act};
}
LinearBwdInput widened(const LinearBwdInput& args, Widening& to) {
  return {to.write(args.dx), to.read(args.dy), to.read(args.w), to.read(args.before), args.act};
}
LinearBwdWeight widened(const LinearBwdWeight& args, Widening& to) {
  return {to.update(args.dw), to.update(args.dbias), to.read(args.dy), to.read(args.x)};
}
BiasDropoutAdd widened(const BiasDropoutAdd& args, Widening& to) {
  return {to.write(args.y), to.read(args.x), to.read(args.bias), to.read(args.residual), args.drop};
}
BiasDropoutAddNorm widened(const BiasDropoutAddNorm& args, Widening& to) {
  BiasDropoutAddNorm wide = args;
  wide.y = to.write(args.y);
  wide.normed = to.write(args.normed);
  wide.x = to.read(args.x);
  wide.bias = to.read(args.bias);
  wide.residual = to.read(args.residual);
  wide.weight = to.read(args.weight);
  wide.norm_bias = to.read(args.norm_bias);
  return wide;
}
AttentionFwd widened(const AttentionFwd& args, Widening& to) {
  return {to.write(args.o), args.lse,   to.read(args.q), to.read(args.k),
          to.read(args.v),  args.scale, args.mask,       args.drop};
}
AttentionBwd widened(const AttentionBwd& args, Widening& to) {
  AttentionBwd wide = args;
  wide.dq = to.write(args.dq);
  wide.dk = args.add_kv ? to.update(args.dk) : to.write(args.dk);
  wide.dv = args.add_kv ? to.update(args.dv) : to.write(args.dv);
  wide.dout = to.read(args.dout);
  wide.q = to.read(args.q);
  wide.k = to.read(args.k);
  wide.v = to.read(args.v);
  wide.o = to.read(args.o);
  return wide;
}
XentFused widened(const XentFused& args, Widening& to) {
  XentFused wide = args;
  wide.logits = to.read(args.logits);
  return wide;
}

} // namespace triax::kernels_cpu
