// SPDX-License-Identifier: Apache-2.0
// Launches of operations on rows of the residual stream.
#include "device_teams.cuh"
#include "kernels.hpp"
#include "norm.hpp"

namespace triax::kernels_fused {

void FusedKernels::do_bias_dropout_add(const BiasDropoutAdd& args, const OpContext& context) {
  kernels_fused::bias_dropout_add(args, DeviceLauncher(Op::bias_dropout_add, context));
}
void FusedKernels::do_bias_dropout_add_norm(const BiasDropoutAddNorm& args, const OpContext& context) {
  kernels_fused::bias_dropout_add_norm(args, DeviceLauncher(Op::bias_dropout_add_norm, context));
}
void FusedKernels::do_dropout(const Dropout& args, const OpContext& context) {
  if (args.drop.p == 0 || args.x.rank() == 4) return Primitives::do_dropout(args, context);
  kernels_fused::dropout(args, DeviceLauncher(Op::dropout, context));
}
void FusedKernels::do_norm_fwd(const NormFwd& args, const OpContext& context) {
  kernels_fused::norm_fwd(args, DeviceLauncher(Op::norm_fwd, context));
}
void FusedKernels::do_norm_bwd_input(const NormBwdInput& args, const OpContext& context) {
  kernels_fused::norm_bwd_input(args, DeviceLauncher(Op::norm_bwd_input, context));
}

} // namespace triax::kernels_fused
