// SPDX-License-Identifier: Apache-2.0
// Launches of reductions (gradients over rows, gradients per token, sums of squares), activations and the optimizer.
#include "adamw.hpp"
#include "columns.hpp"
#include "device_teams.cuh"
#include "elementwise.hpp"
#include "embed.hpp"
#include "kernels.hpp"
#include "squares.hpp"

namespace triax::kernels_fused {

void FusedKernels::do_bias_bwd(const BiasBwd& args, const OpContext& context) {
  kernels_fused::bias_bwd(args, DeviceLauncher(Op::bias_bwd, context));
}
void FusedKernels::do_norm_bwd_weight(const NormBwdWeight& args, const OpContext& context) {
  kernels_fused::norm_bwd_weight(args, DeviceLauncher(Op::norm_bwd_weight, context));
}
void FusedKernels::do_embed_bwd(const EmbedBwd& args, const OpContext& context) {
  kernels_fused::embed_bwd(args, DeviceLauncher(Op::embed_bwd, context));
}
void FusedKernels::do_sum_squares(const SumSquares& args, const OpContext& context) {
  kernels_fused::sum_squares(args, DeviceLauncher(Op::sum_squares, context));
}
void FusedKernels::do_act_fwd(const ActFwd& args, const OpContext& context) {
  if (args.act != Activation::gelu_tanh) return Primitives::do_act_fwd(args, context);
  kernels_fused::gelu_fwd(args, DeviceLauncher(Op::act_fwd, context));
}
void FusedKernels::do_act_bwd(const ActBwd& args, const OpContext& context) {
  if (args.act != Activation::gelu_tanh) return Primitives::do_act_bwd(args, context);
  kernels_fused::gelu_bwd(args, DeviceLauncher(Op::act_bwd, context));
}
void FusedKernels::do_adamw(const AdamW& args, const OpContext& context) {
  kernels_fused::multi_adamw({std::span(&args, 1)}, DeviceLauncher(Op::adamw, context));
}
void FusedKernels::do_multi_adamw(const MultiAdamW& args, const OpContext& context) {
  kernels_fused::multi_adamw(args, DeviceLauncher(Op::multi_adamw, context));
}

} // namespace triax::kernels_fused
