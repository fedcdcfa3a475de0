// The fused kernel set on GPUs.
//
// Threads: the rank's main thread. Ownership: as triax/cuda/primitives.hpp; memory comes in as views. Blocking: never:
// an operation is put on its stream. Errors: Error for types other than f32, bf16 and f16, and for what CUDA or cuBLAS
// refuse. What is not overridden here is done by the primitives, or by the core's default made of them.
#pragma once

#include "triax/cuda/primitives.hpp"
#include "triax/plugin.hpp"

namespace triax::fused {

class FusedKernels final : public cuda::Primitives {
 public:
  explicit FusedKernels(const PluginContext& context);

  using cuda::Primitives::supports;
  Support supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;

 protected:
  void do_attention_fwd(const AttentionFwd& args, const OpContext& context) override;
  void do_attention_bwd(const AttentionBwd& args, const OpContext& context) override;
};

} // namespace triax::fused
