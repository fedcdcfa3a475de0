// SPDX-License-Identifier: Apache-2.0
// Launches of softmax and cross-entropy.
#include "device_teams.cuh"
#include "kernels.hpp"
#include "softmax.hpp"
#include "xent.hpp"

namespace triax::kernels_fused {

void FusedKernels::do_softmax_fwd(const SoftmaxFwd& args, const OpContext& context) {
  kernels_fused::softmax_fwd(args, DeviceLauncher(Op::softmax_fwd, context));
}
void FusedKernels::do_softmax_bwd(const SoftmaxBwd& args, const OpContext& context) {
  kernels_fused::softmax_bwd(args, DeviceLauncher(Op::softmax_bwd, context));
}
void FusedKernels::do_xent_max(const XentMax& args, const OpContext& context) {
  kernels_fused::xent_max(args, DeviceLauncher(Op::xent_max, context));
}
void FusedKernels::do_xent_sums(const XentSums& args, const OpContext& context) {
  kernels_fused::xent_sums(args, DeviceLauncher(Op::xent_sums, context));
}
void FusedKernels::do_xent_bwd(const XentBwd& args, const OpContext& context) {
  kernels_fused::xent_bwd(args, DeviceLauncher(Op::xent_bwd, context));
}
void FusedKernels::do_xent_fused(const XentFused& args, const OpContext& context) {
  kernels_fused::xent_rows(args, DeviceLauncher(Op::xent_fused, context));
  do_xent_loss({args.loss, args.sum_exp, args.target_logit}, context);
}

} // namespace triax::kernels_fused
