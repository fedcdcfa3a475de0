// SPDX-License-Identifier: Apache-2.0
// Attention in tiles: scores exist only for one tile of queries and keys at a time, in registers, never in memory.
//
// Forward writes o and lse. Backward recomputes the probabilities from q, k and lse, and computes rowsum(dout * o)
// (Dao, "FlashAttention-2", 2023). The order of every sum depends only on the shape.
#include "attention_kernels.hpp"
#include "fused_kernels.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

void FusedKernels::do_attention_fwd(const AttentionFwd& args, const OpContext& context) {
  cuda::by_type(args.q.dtype(), [&]<class T>(T) { run_forward<T>(attention_of(args), max_shared_bytes_, context); });
}

void FusedKernels::do_attention_bwd(const AttentionBwd& args, const OpContext& context) {
  const AttentionGradients gradients = gradients_of(args, context.scratch.data());
  cuda::by_type(args.q.dtype(),
                [&]<class T>(T) { run_backward<T>(attention_of(args), gradients, max_shared_bytes_, context); });
}

} // namespace triax::kernels_fused
