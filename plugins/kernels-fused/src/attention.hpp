// SPDX-License-Identifier: Apache-2.0
// Attention in tiles: scores exist only for one tile of queries and keys at a time, in registers, never in memory.
//
// Threads: any. Ownership: views and scratch are the caller's. Blocking: never; launch() enqueues on the stream.
// Errors: launch() throws Error if CUDA rejects the launch.
//
// Forward writes o and lse. Backward recomputes the probabilities from q, k and lse, and computes rowsum(dout * o)
// (Dao, "FlashAttention-2", 2023). The order of every sum depends only on the shape.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "triax/error.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::kernels_fused {

/// Types f32, bf16 and f16, heads of at most 256 elements.
Refusals attention_supported(const AttentionFwd& args);
Refusals attention_supported(const AttentionBwd& args);

std::size_t scratch_of(const AttentionFwd& args);
std::size_t scratch_of(const AttentionBwd& args);

void launch(const AttentionFwd& args, std::span<std::byte> scratch, cudaStream_t stream);
void launch(const AttentionBwd& args, std::span<std::byte> scratch, cudaStream_t stream);

} // namespace triax::kernels_fused
