// What the set does better than the primitives, and the scratch that it needs.
#include "kernels.hpp"

#include "attention.hpp"
#include "triax/cuda/device.hpp"

namespace triax::fused {

FusedKernels::FusedKernels(const PluginContext& context)
    : Primitives({.plugin = "kernels-fused", .tf32 = context.options.flag("tf32")}) {}

Support FusedKernels::supports(const OpCall& call) const {
  if (call.op == Op::attention_fwd) return attention_supported(call.as<AttentionFwd>());
  if (call.op == Op::attention_bwd) return attention_supported(call.as<AttentionBwd>());
  return Primitives::supports(call);
}

std::size_t FusedKernels::scratch_bytes(const OpCall& call) const {
  if (call.op == Op::attention_fwd) return scratch_of(call.as<AttentionFwd>());
  if (call.op == Op::attention_bwd) return scratch_of(call.as<AttentionBwd>());
  return Primitives::scratch_bytes(call);
}

void FusedKernels::do_attention_fwd(const AttentionFwd& args, const OpContext& context) {
  launch(args, context.scratch, cuda::launch_stream(context.stream));
}
void FusedKernels::do_attention_bwd(const AttentionBwd& args, const OpContext& context) {
  launch(args, context.scratch, cuda::launch_stream(context.stream));
}

} // namespace triax::fused
