// SPDX-License-Identifier: Apache-2.0
#include "cost/code_traits.hpp"

namespace triax::cost {

namespace {

/// Products add to gradients in the master type (kernel_ops.hpp: LinearBwdWeight). A layer waits for the collectives of
/// its input gradient before its weight gradient. Transfers are posted, and only the pass that needs one waits for it
/// (docs/adr/0003). Gradients are reduced where they are, beside the passes of other stages. R is an action before the
/// wait for the gradient (docs/adr/0038).
CodeTraits engine() {
  CodeTraits out;
  out.scores = CodeTraits::Scores::tiled;
  out.accumulates_in_gemm = true;
  out.synchronizes = false;
  out.overlaps_reduction = true;
  out.recomputes_early = true;
  out.reduction_bytes.reset();
  out.reduction_copy_bytes = 0;
  out.update_bytes.reset();
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

double reduction_bytes(const CodeTraits& code, DType master) {
  return code.reduction_bytes.value_or(static_cast<double>(bytes_of(master)));
}

/// In this engine the norm reads the gradient; the optimizer reads it, weights and states, and writes weights, states,
/// and working weights of another type; the next step zeroes the gradient.
double update_bytes(const CodeTraits& code, std::size_t states, DType master, DType compute) {
  if (code.update_bytes) return *code.update_bytes;
  const auto kept = static_cast<double>(1 + states);
  const double working = compute == master ? 0 : static_cast<double>(bytes_of(compute));
  return static_cast<double>(bytes_of(master)) * (1 + 1 + kept + kept + 1) + working;
}

} // namespace triax::cost
