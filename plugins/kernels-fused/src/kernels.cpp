// What the set does better than the primitives, and the scratch that it needs.
#include "kernels.hpp"

namespace triax::fused {

FusedKernels::FusedKernels(const PluginContext& context)
    : Primitives({.plugin = "kernels-fused", .tf32 = context.options.flag("tf32")}) {}

Support FusedKernels::supports(const OpCall& call) const {
  return Primitives::supports(call);
}

std::size_t FusedKernels::scratch_bytes(const OpCall& call) const {
  return Primitives::scratch_bytes(call);
}

} // namespace triax::fused
