// SPDX-License-Identifier: Apache-2.0
// The fused kernel set for GPUs.
//
// Threads: the rank's main thread. Ownership: as in triax/cuda/primitives.hpp; memory is passed in as views. Blocking:
// operations are enqueued on their stream; enqueueing may run the progress loop (launch_stream()). Errors: Error for
// types other than f32, bf16 and f16, for a step without scalars, and for errors of CUDA, cuBLAS or cuBLASLt.
//
// Operations that are not overridden here are those of the primitives, or the core's defaults. No atomics; the order of
// every sum depends only on its shape.
#pragma once

#include "lt.hpp"
#include "triax/cheap_recompute.hpp"
#include "triax/cuda/primitives.hpp"
#include "triax/plugin.hpp"

namespace triax::kernels_fused {

/// Rows of a gradient that the embedding can sort: a sort key has 32 bits for the row.
inline constexpr std::int64_t kMaxEmbeddingRows = 0xFFFFFFFF;

class FusedKernels final : public cuda::Primitives, public RepeatLimits {
 public:
  explicit FusedKernels(const PluginContext& context);

  using cuda::Primitives::supports;
  Refusals supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;
  void prepare(const OpCall& call) override;
  void start(Device& device) override;

  void* extension(std::string_view id) noexcept override {
    return id == RepeatLimits::kExtension ? static_cast<RepeatLimits*>(this) : nullptr;
  }
  /// cuBLASLt's epilogue computes GELU before it rounds its input; see the option separate_gelu.
  Refusals repeats(const OpCall& primitive) const override;

 protected:
#define TRIAX_OP(Args, name) void do_##name(const Args& args, const OpContext& context) override;
  TRIAX_OP(LinearFwd, linear_fwd)
  TRIAX_OP(LinearBwdInput, linear_bwd_input)
  TRIAX_OP(LinearBwdWeight, linear_bwd_weight)
  TRIAX_OP(BiasDropoutAdd, bias_dropout_add)
  TRIAX_OP(BiasDropoutAddNorm, bias_dropout_add_norm)
  TRIAX_OP(Dropout, dropout)
  TRIAX_OP(Add, add)
  TRIAX_OP(ActFwd, act_fwd)
  TRIAX_OP(ActBwd, act_bwd)
  TRIAX_OP(NormFwd, norm_fwd)
  TRIAX_OP(NormBwdInput, norm_bwd_input)
  TRIAX_OP(NormBwdWeight, norm_bwd_weight)
  TRIAX_OP(BiasBwd, bias_bwd)
  TRIAX_OP(SoftmaxFwd, softmax_fwd)
  TRIAX_OP(SoftmaxBwd, softmax_bwd)
  TRIAX_OP(XentMax, xent_max)
  TRIAX_OP(XentSums, xent_sums)
  TRIAX_OP(XentBwd, xent_bwd)
  TRIAX_OP(XentFused, xent_fused)
  TRIAX_OP(AttentionFwd, attention_fwd)
  TRIAX_OP(AttentionBwd, attention_bwd)
  TRIAX_OP(EmbedFwd, embed_fwd)
  TRIAX_OP(EmbedBwd, embed_bwd)
  TRIAX_OP(SumSquares, sum_squares)
  TRIAX_OP(AdamW, adamw)
  TRIAX_OP(MultiAdamW, multi_adamw)
#undef TRIAX_OP

 private:
  /// Uses cuBLASLt if it has an algorithm for the shape; else does nothing and returns false.
  bool multiply(const Product& product, const OpContext& context);
  /// Whether the product of a forward computes GELU.
  bool has_gelu_epilogue(Activation act, DType data) const;
  /// The forward without an activation that the product leaves to another kernel.
  LinearFwd product_args(const LinearFwd& args) const;

  const bool separate_gelu_;
  LtProducts products_;
  std::size_t max_shared_bytes_ = 0; // that a block may have on the GPU
};

} // namespace triax::kernels_fused
