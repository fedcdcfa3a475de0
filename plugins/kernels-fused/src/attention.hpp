// SPDX-License-Identifier: Apache-2.0
// Attention in tiles: scores exist for a tile of queries and keys at a time, in registers, and never in memory.
//
// Threads: any. Ownership: views and scratch are the caller's. Blocking: never: work is put on the stream. Errors:
// launch() throws Error where CUDA refuses the launch.
// Forward keeps o and lse; backward computes the probabilities again from q, k and lse, and rowsum(dout * o) (Dao,
// "FlashAttention-2", 2023). Every sum's order depends on the shape alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "triax/error.hpp"
#include "triax/kernel_ops.hpp"

namespace triax::fused {

/// f32, bf16 and f16, heads of at most 256.
Support attention_supported(const AttentionFwd& args);
Support attention_supported(const AttentionBwd& args);

std::size_t scratch_of(const AttentionFwd& args);
std::size_t scratch_of(const AttentionBwd& args);

void launch(const AttentionFwd& args, std::span<std::byte> scratch, cudaStream_t stream);
void launch(const AttentionBwd& args, std::span<std::byte> scratch, cudaStream_t stream);

} // namespace triax::fused
