// SPDX-License-Identifier: Apache-2.0
// Fused operations as lists of primitives. The same list is used to run, to plan scratch, to prepare and to query
// support.
//
// Threads: pure functions. Ownership: views refer to the caller's memory and scratch; nothing allocates.
// Calls `emit(primitive)` for each primitive in order. In a dry run, views of the scratch have sizes only, and
// primitives that are equal for all samples are emitted once.
#pragma once

#include <cstddef>
#include <span>

#include "triax/device.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::kernels {

/// Allocates a fused operation's own buffers from the front of the call's scratch.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> bytes) : data_(bytes.data()), left_(bytes.size()) {}
  /// For a dry run: without memory; take() accepts any size.
  static Scratch dry_run() {
    Scratch out({});
    out.plans_ = true;
    return out;
  }
  bool plans() const { return plans_; }

  TensorView take(DType dtype, const Shape& shape) {
    TensorView view(data_, dtype, shape);
    const std::size_t bytes = Arena::aligned(view.bytes());
    taken_ += bytes;
    if (data_) {
      data_ += bytes;
      left_ -= bytes;
    }
    return view;
  }
  std::size_t taken() const { return taken_; }
  std::span<std::byte> rest() const { return {data_, left_}; }

 private:
  std::byte* data_;
  std::size_t left_;
  std::size_t taken_ = 0;
  bool plans_ = false;
};

template <class Emit>
void expand(const LinearFwd& args, Scratch&, Emit&& emit) {
  const bool activated = args.act != Activation::none;
  const TensorView z = (activated ? args.z : args.y).as_rows();
  emit(Gemm{.d = z, .a = args.x.as_rows(), .b = args.w, .transpose_b = true});
  if (!args.bias.empty()) emit(BiasAdd{z, z, args.bias});
  if (activated) emit(ActFwd{args.act, args.y, z});
}

template <class Emit>
void expand(const LinearBwdInput& args, Scratch& scratch, Emit&& emit) {
  const TensorView dy = args.dy.as_rows(), dx = args.dx.as_rows();
  const bool narrower = args.act == Activation::silu_mul; // the product is narrower than dx
  const TensorView product = narrower ? scratch.take(args.dx.dtype(), {dy.size(0), args.w.size(1)}) : dx;
  emit(Gemm{.d = product, .a = dy, .b = args.w});
  if (args.act != Activation::none) emit(ActBwd{args.act, dx, product, args.before.as_rows()});
}

template <class Emit>
void expand(const LinearBwdWeight& args, Scratch&, Emit&& emit) {
  emit(Gemm{.d = args.dw, .a = args.dy.as_rows(), .b = args.x.as_rows(), .transpose_a = true, .beta = 1});
  if (!args.dbias.empty()) emit(BiasBwd{args.dbias, args.dy});
}

template <class Emit>
void expand(const BiasDropoutAdd& args, Scratch& scratch, Emit&& emit) {
  const Shape shape = args.x.shape();
  const auto shaped = [&](const TensorView& view) { return view.reshape(shape); };
  TensorView branch = args.x;
  // y may be residual, so the other addend needs its own buffer.
  if (!args.bias.empty() || args.drop.p > 0) branch = scratch.take(args.x.dtype(), shape);
  if (!args.bias.empty()) emit(BiasAdd{branch, args.x, args.bias});
  if (args.drop.p > 0) emit(Dropout{branch, args.bias.empty() ? args.x : branch, args.drop});
  emit(Add{shaped(args.y), shaped(args.residual), branch});
}

template <class Emit>
void expand(const BiasDropoutAddNorm& args, Scratch& scratch, Emit&& emit) {
  expand(BiasDropoutAdd{args.y, args.x, args.bias, args.residual, args.drop}, scratch, emit);
  emit(NormFwd{args.kind, args.normed, args.y, args.weight, args.norm_bias, args.mean, args.rstd, args.eps});
}

template <class Emit>
void expand(const XentFused& args, Scratch&, Emit&& emit) {
  emit(XentMax{args.max, args.logits, args.valid});
  emit(XentSums{args.sum_exp, args.target_logit, args.logits, args.max, args.targets, 0, args.valid});
  emit(XentLoss{args.loss, args.sum_exp, args.target_logit});
}

template <class Emit>
void expand(const MultiAdamW& args, Scratch&, Emit&& emit) {
  for (const AdamW& shard : args.shards) emit(shard);
}

} // namespace triax::kernels
