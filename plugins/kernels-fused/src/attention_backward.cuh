// SPDX-License-Identifier: Apache-2.0
// Attention backward, in three kernels: delta = rowsum(dout * o); the gradient of queries, with a block per tile of
// queries; the gradients of keys and values, with a block per tile of keys. The last two recompute the probabilities
// from q, k and lse (Dao, "FlashAttention-2", 2023, algorithm 2).
//
// Host threads: run_backward(): any. Ownership: all memory is the caller's. Blocking: never. Errors: Error if CUDA
// rejects the launch.
//
// A single kernel for all gradients would need five products instead of seven. But concurrent blocks would add to the
// same dq: in no fixed order, or in separate buffers that grow with s x s.
#pragma once

#include "attention_backward_delta.cuh"
#include "attention_backward_dkdv.cuh"
#include "attention_backward_dq.cuh"
#include "attention_launch.cuh"

namespace triax::kernels_fused {

template <class T>
void run_backward(const Attention& attention, const AttentionGradients& gradients, std::size_t max_shared_bytes,
                  cudaStream_t stream) {
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  launch_attention("attention_backward_delta", attention_backward_delta<T>,
                   cuda::grid_of_blocks(tiles_of(rows, kBlockSize / kWarpSize * delta_rows<T>(size.head_dim))), stream,
                   attention, gradients);
  dispatch_head_dim<T>(size.head_dim, max_shared_bytes, [&]<class Sizes>(Sizes) {
    using Dq = typename Sizes::BackwardDq;
    launch_attention("attention_backward_dq", attention_backward_dq<Dq>,
                     {query_blocks<Dq>(size), Dq::kThreads, kBackwardShared<Dq>}, stream, attention, gradients);
    using Dkdv = typename Sizes::BackwardDkdv;
    launch_attention("attention_backward_dkdv", attention_backward_dkdv<Dkdv>,
                     {key_blocks<Dkdv>(size), Dkdv::kThreads, kBackwardShared<Dkdv>}, stream, attention, gradients);
  });
}

} // namespace triax::kernels_fused
