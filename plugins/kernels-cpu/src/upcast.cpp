// SPDX-License-Identifier: Apache-2.0
// Which views each operation reads, writes and updates.
#include "upcast.hpp"

#include <algorithm>

namespace triax::kernels_cpu {

TensorView UpcastViews::add(const TensorView& view, bool load, bool store) {
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

Gemm upcast(const Gemm& args, UpcastViews& to) {
  Gemm wide = args;
  wide.a = to.read(args.a);
  wide.b = to.read(args.b);
  wide.d = args.beta == 0 ? to.write(args.d) : to.update(args.d);
  return wide;
}
BiasAdd upcast(const BiasAdd& args, UpcastViews& to) {
  return {to.write(args.y), to.read(args.x), to.read(args.bias)};
}
BiasBwd upcast(const BiasBwd& args, UpcastViews& to) {
  return {to.update(args.dbias), to.read(args.dy)};
}
Add upcast(const Add& args, UpcastViews& to) {
  return {to.write(args.y), to.read(args.a), to.read(args.b)};
}
Dropout upcast(const Dropout& args, UpcastViews& to) {
  return {to.write(args.y), to.read(args.x), args.drop};
}
ActFwd upcast(const ActFwd& args, UpcastViews& to) {
  return {args.act, to.write(args.y), to.read(args.x)};
}
ActBwd upcast(const ActBwd& args, UpcastViews& to) {
  return {args.act, to.write(args.dx), to.read(args.dy), to.read(args.x)};
}
NormFwd upcast(const NormFwd& args, UpcastViews& to) {
  return {args.kind,          to.write(args.y), to.read(args.x), to.read(args.weight),
          to.read(args.bias), args.mean,        args.rstd,       args.eps};
}
NormBwdInput upcast(const NormBwdInput& args, UpcastViews& to) {
  return {args.kind, to.write(args.dx), to.read(args.dy),      to.read(args.x), to.read(args.weight),
          args.mean, args.rstd,         to.read(args.residual)};
}
NormBwdWeight upcast(const NormBwdWeight& args, UpcastViews& to) {
  return {args.kind, to.update(args.dweight), to.update(args.dbias), to.read(args.dy), to.read(args.x), args.mean,
          args.rstd};
}
SoftmaxFwd upcast(const SoftmaxFwd& args, UpcastViews& to) {
  return {to.write(args.y), to.read(args.x), args.scale, args.mask, args.lse};
}
SoftmaxBwd upcast(const SoftmaxBwd& args, UpcastViews& to) {
  return {to.write(args.dx), to.read(args.dy), to.read(args.y), args.scale, args.delta};
}
SoftmaxFromLse upcast(const SoftmaxFromLse& args, UpcastViews& to) {
  return {to.write(args.y), to.read(args.x), args.lse, args.scale, args.mask};
}
AttentionDelta upcast(const AttentionDelta& args, UpcastViews& to) {
  return {args.delta, to.read(args.dout), to.read(args.o)};
}
AttentionMerge upcast(const AttentionMerge& args, UpcastViews& to) {
  return {to.update(args.o), args.lse, to.read(args.o_more), args.lse_more};
}
Rope upcast(const Rope& args, UpcastViews& to) {
  return {to.write(args.y), to.read(args.x), args.position0, args.base, args.inverse, args.scaling};
}
EmbedFwd upcast(const EmbedFwd& args, UpcastViews&) {
  return args; // copies rows of any type
}
EmbedBwd upcast(const EmbedBwd& args, UpcastViews& to) {
  return {to.update(args.dtable), to.read(args.dy), args.tokens, args.begin, args.valid};
}
XentMax upcast(const XentMax& args, UpcastViews& to) {
  return {args.max, to.read(args.logits), args.valid};
}
XentSums upcast(const XentSums& args, UpcastViews& to) {
  return {args.sum_exp, args.target_logit, to.read(args.logits), args.max, args.targets, args.begin, args.valid};
}
XentLoss upcast(const XentLoss& args, UpcastViews&) {
  return args;
}
XentBwd upcast(const XentBwd& args, UpcastViews& to) {
  XentBwd wide = args;
  wide.logits = to.update(args.logits);
  return wide;
}
SumSquares upcast(const SumSquares& args, UpcastViews& to) {
  return {args.out, to.read(args.x)};
}
StepControl upcast(const StepControl& args, UpcastViews&) {
  return args;
}

// The optimizers convert the working copy themselves.
AdamW upcast(const AdamW& args, UpcastViews&) {
  return args;
}
Sgd upcast(const Sgd& args, UpcastViews&) {
  return args;
}
MultiAdamW upcast(const MultiAdamW& args, UpcastViews&) {
  return args;
}

LinearFwd upcast(const LinearFwd& args, UpcastViews& to) {
  return {to.write(args.y), to.write(args.z), to.read(args.x), to.read(args.w), to.read(args.bias), args.act};
}
LinearBwdInput upcast(const LinearBwdInput& args, UpcastViews& to) {
  return {to.write(args.dx), to.read(args.dy), to.read(args.w), to.read(args.before), args.act};
}
LinearBwdWeight upcast(const LinearBwdWeight& args, UpcastViews& to) {
  return {to.update(args.dw), to.update(args.dbias), to.read(args.dy), to.read(args.x)};
}
BiasDropoutAdd upcast(const BiasDropoutAdd& args, UpcastViews& to) {
  return {to.write(args.y), to.read(args.x), to.read(args.bias), to.read(args.residual), args.drop};
}
BiasDropoutAddNorm upcast(const BiasDropoutAddNorm& args, UpcastViews& to) {
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
AttentionFwd upcast(const AttentionFwd& args, UpcastViews& to) {
  return {to.write(args.o), args.lse,   to.read(args.q), to.read(args.k),
          to.read(args.v),  args.scale, args.mask,       args.drop};
}
AttentionBwd upcast(const AttentionBwd& args, UpcastViews& to) {
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
XentFused upcast(const XentFused& args, UpcastViews& to) {
  XentFused wide = args;
  wide.logits = to.read(args.logits);
  return wide;
}

} // namespace triax::kernels_cpu
