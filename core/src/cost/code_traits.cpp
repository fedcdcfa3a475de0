// SPDX-License-Identifier: Apache-2.0
#include "cost/code_traits.hpp"

namespace triax::cost {

namespace {

/// Products add to gradients in the master type (kernel_ops.hpp: LinearBwdWeight). A layer waits for the collectives of
/// its input gradient before its weight gradient. Transfers are posted, and only the pass that needs one waits for it
/// (docs/adr/0003). Gradients are reduced where they are, beside the passes of other stages.
CodeTraits engine() {
  CodeTraits out;
  out.scores = CodeTraits::Scores::tiled;
  out.accumulates_in_gemm = true;
  out.synchronizes = false;
  out.overlaps_reduction = true;
  out.reduction_bytes = 4;
  out.reduction_copy_bytes = 0;
  // fp32: the norm reads the gradient; AdamW reads it, weights and two states, and writes these three and the weights
  // in 16 bits; the next step zeroes the gradient.
  out.optimizer_bytes = 4 + 16 + 12 + 2 + 4;
  return out;
}

} // namespace

std::optional<CodeTraits> code_named(std::string_view name) {
  if (name == "triax") return engine();
  CodeTraits out;
  if (name == "megatron-2021") return out;
  if (name != "megatron-2022") return std::nullopt;
  out.accumulates_in_gemm = true;
  out.overlaps_tensor = true;
  return out;
}

} // namespace triax::cost
