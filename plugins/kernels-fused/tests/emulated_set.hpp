// SPDX-License-Identifier: Apache-2.0
// A kernel set that runs kernels of kernels-fused on the host, for the shared cases.
//
// Threads: one. Ownership: none. Blocking: computes in the call. Errors: supports() refuses other operations.
#pragma once

#include "triax/kernels.hpp"

namespace triax::kernels_fused {

class EmulatedSet final : public KernelSet {
 public:
  /// backwards: see host_teams.hpp.
  explicit EmulatedSet(bool backwards) : backwards_(backwards) {}

  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest&) const override { return {}; }
  Refusals supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;
  void start(Device&) override {}

 protected:
#define TRIAX_OP(Args, name) void do_##name(const Args& args, const OpContext& context) override;
  TRIAX_OP(BiasDropoutAdd, bias_dropout_add)
  TRIAX_OP(BiasDropoutAddNorm, bias_dropout_add_norm)
  TRIAX_OP(Dropout, dropout)
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
  TRIAX_OP(EmbedBwd, embed_bwd)
  TRIAX_OP(SumSquares, sum_squares)
  TRIAX_OP(AdamW, adamw)
  TRIAX_OP(MultiAdamW, multi_adamw)
#undef TRIAX_OP

 private:
  bool backwards_;
};

} // namespace triax::kernels_fused
