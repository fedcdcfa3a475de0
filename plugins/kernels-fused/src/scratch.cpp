// SPDX-License-Identifier: Apache-2.0
#include "scratch.hpp"

#include "attention_plan.hpp"

namespace triax::kernels_fused {

std::optional<std::size_t> own_scratch(const OpCall& call) {
  switch (call.op) {
    case Op::bias_bwd:
      return scratch_of(call.as<BiasBwd>());
    case Op::norm_bwd_weight:
      return scratch_of(call.as<NormBwdWeight>());
    case Op::embed_bwd:
      return scratch_of(call.as<EmbedBwd>());
    case Op::sum_squares:
      return scratch_of(call.as<SumSquares>());
    case Op::attention_bwd:
      return delta_bytes(call.as<AttentionBwd>().q);
    case Op::attention_fwd:
    case Op::bias_dropout_add:
    case Op::bias_dropout_add_norm:
    case Op::multi_adamw:
      return 0;
    default:
      return {};
  }
}

} // namespace triax::kernels_fused
