// SPDX-License-Identifier: Apache-2.0
// Converts attention arguments to sizes, strides and pointers.
#include "attention_plan.hpp"

#include <algorithm>

#include "triax/precision.hpp"

namespace triax::kernels_fused {

namespace {

/// A dimension of size 1 may have any stride, because it is not used.
std::int64_t step_of(const TensorView& x, int dim) {
  return x.size(dim) > 1 ? x.stride(dim) : 0;
}

bool aligned(const TensorView& x, std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes_of(x.dtype()));
  const auto fits = [&](std::int64_t elements) { return elements * size % bytes == 0; };
  return reinterpret_cast<std::uintptr_t>(x.data()) % static_cast<std::uintptr_t>(bytes) == 0 && fits(step_of(x, 0)) &&
         fits(step_of(x, 1)) && fits(step_of(x, 2));
}

template <class Args>
AttentionParams common(const Args& args) {
  AttentionParams out;
  out.size = {args.q.size(0), args.k.size(0), args.q.size(1),
              args.q.size(2), args.k.size(2), static_cast<int>(args.q.size(3))};
  out.mask = cuda::mask_plan(args.mask);
  const Drop& drop = args.drop;
  if (drop.p > 0) {
    out.drop = {drop.key,
                drop.site,
                drop_threshold(drop.p),
                static_cast<float>(1.0 / (1.0 - static_cast<double>(drop.p))),
                drop.samples.as<const std::int64_t>(),
                drop.head0,
                drop.rows,
                drop.width};
  }
  out.scale = static_cast<float>(args.scale);
  out.q = head_view(args.q);
  out.k = head_view(args.k);
  out.v = head_view(args.v);
  out.o = head_view(args.o);
  out.lse = args.lse.template as<float>();
  return out;
}

} // namespace

HeadView head_view(const TensorView& x) {
  const auto size = static_cast<std::int64_t>(bytes_of(x.dtype()));
  return {x.data(),
          step_of(x, 0),
          step_of(x, 1),
          step_of(x, 2),
          aligned(x, 16) && x.size(3) * size % 16 == 0,
          aligned(x, 2 * size)};
}

AttentionParams attention_of(const AttentionFwd& args) {
  return common(args);
}
AttentionParams attention_of(const AttentionBwd& args) {
  return common(args);
}
AttentionGradients gradients_of(const AttentionBwd& args, void* scratch) {
  return {head_view(args.dout), head_view(args.dq),           head_view(args.dk),
          head_view(args.dv),   static_cast<float*>(scratch), args.add_kv};
}

Refusals attention_supported(const TensorView& q, const TensorView& k) {
  Refusals out;
  const DType type = q.dtype();
  if (type != DType::f32 && type != DType::bf16 && type != DType::f16) {
    out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                         "kernels-fused computes attention in fp32, bf16 and fp16, but q is {}", precision_name(type))
                .with_hint("use train.precision fp32, bf16 or fp16"));
  }
  if (q.size(3) > kMaxHeadDim) {
    out.add(make_refusal(ErrorCode::kOutOfRange, {"model.heads", "model.hidden"},
                         "attention with heads of {} elements: a tile holds at most {}", q.size(3), kMaxHeadDim)
                .with_hint("use more heads, or kernels-cublas"));
  }
  // A tile has at least 16 queries or keys, and at most two blocks.
  const std::int64_t most = std::max(2 * tiles_of(q.size(0), 16) * q.size(2), 2 * tiles_of(k.size(0), 16) * k.size(2));
  if (most > 0 && q.size(1) > kMaxGridBlocks / most) {
    out.add(make_refusal(ErrorCode::kTooLarge, {"batch.micro"},
                         "attention of {} samples with {} heads of {} queries is more tiles than a grid has blocks",
                         q.size(1), q.size(2), q.size(0))
                .with_hint("use a smaller microbatch"));
  }
  return out;
}

std::size_t delta_bytes(const TensorView& q) {
  return static_cast<std::size_t>(q.size(0) * q.size(1) * q.size(2)) * sizeof(float);
}

} // namespace triax::kernels_fused
