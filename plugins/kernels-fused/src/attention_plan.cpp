// SPDX-License-Identifier: Apache-2.0
// Converts attention arguments to sizes, strides and pointers.
#include "attention_plan.hpp"

#include <string_view>

#include "attention_config.hpp"
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

AttentionSizes sizes_of(const TensorView& q, const TensorView& k) {
  return {q.size(0), k.size(0), q.size(1), q.size(2), k.size(2), static_cast<int>(q.size(3))};
}

template <class Args>
AttentionParams common(const Args& args) {
  AttentionParams out;
  out.size = sizes_of(args.q, args.k);
  out.mask = cuda::mask_plan(args.mask);
  if (args.drop.p > 0) out.drop = cuda::drop_arguments(args.drop);
  out.scale = static_cast<float>(args.scale);
  out.q = head_view(args.q);
  out.k = head_view(args.k);
  out.v = head_view(args.v);
  out.o = head_view(args.o);
  out.lse = args.lse.template as<float>();
  return out;
}

/// Type and width of heads.
Refusals tiles_supported(const TensorView& q) {
  Refusals out;
  const DType type = q.dtype();
  if (type != DType::f32 && type != DType::bf16 && type != DType::f16) {
    out.add(make_refusal(ErrorCode::kUnsupported, {"train.precision"},
                         "kernels-fused computes attention in fp32, bf16 and fp16, but q is {}", precision_name(type))
                .with_hint("use train.precision fp32, bf16 or fp16"));
  }
  if (q.size(3) > kMaxHeadDim) {
    out.add(make_refusal(ErrorCode::kOutOfRange, {"model.heads", "model.hidden"},
                         "attention heads have {} elements, but kernels-fused supports at most {}", q.size(3),
                         kMaxHeadDim)
                .with_hint("use more heads, or kernels-cublas"));
  }
  return out;
}

/// Calls body(TileSizes<...>{}) with the smallest tiles that a GPU may use, so the most blocks.
template <class Body>
void dispatch_smallest_tiles(const TensorView& q, Body body) {
  const auto head_dim = static_cast<int>(q.size(3));
  // Both types of 16 bits have the same tiles.
  q.dtype() == DType::f32 ? dispatch_head_dim<float>(head_dim, 0, body) : dispatch_head_dim<Bf16>(head_dim, 0, body);
}

Refusals blocks_supported(std::int64_t blocks, std::int64_t samples, std::int64_t heads, std::int64_t length,
                          std::string_view rows) {
  if (blocks <= kMaxGridBlocks) return {};
  return make_refusal(ErrorCode::kTooLarge, {"batch.micro"},
                      "attention of {} samples with {} heads of {} {} takes {} blocks: a grid has at most {}", samples,
                      heads, length, rows, blocks, kMaxGridBlocks)
      .with_hint("use a smaller microbatch");
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

Refusals attention_supported(const AttentionFwd& args) {
  Refusals out = tiles_supported(args.q);
  if (!out.empty()) return out;
  const AttentionSizes size = sizes_of(args.q, args.k);
  dispatch_smallest_tiles(args.q, [&]<class Sizes>(Sizes) {
    out = blocks_supported(query_blocks<typename Sizes::Forward>(size), size.samples, size.heads, size.queries,
                           "queries");
  });
  return out;
}
Refusals attention_supported(const AttentionBwd& args) {
  Refusals out = tiles_supported(args.q);
  if (!out.empty()) return out;
  const AttentionSizes size = sizes_of(args.q, args.k);
  dispatch_smallest_tiles(args.q, [&]<class Sizes>(Sizes) {
    out = blocks_supported(query_blocks<typename Sizes::BackwardDq>(size), size.samples, size.heads, size.queries,
                           "queries");
    out.add(blocks_supported(key_blocks<typename Sizes::BackwardDkdv>(size), size.samples, size.key_heads, size.keys,
                             "keys"));
  });
  return out;
}

std::size_t delta_bytes(const TensorView& q) {
  return static_cast<std::size_t>(q.size(0) * q.size(1) * q.size(2)) * sizeof(float);
}

} // namespace triax::kernels_fused
