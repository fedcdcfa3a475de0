// SPDX-License-Identifier: Apache-2.0
// Launches of attention for each type; each is compiled in a separate file.
//
// Threads: the rank's main thread. Ownership: all memory is the caller's. Blocking: each launch may run the progress
// loop (launch_stream()). Errors: Error if CUDA rejects the launch.
#pragma once

#include "attention_plan.hpp"
#include "triax/half.hpp"
#include "triax/kernels.hpp"

namespace triax::kernels_fused {

/// max_shared_bytes: shared memory that a block may have on the current GPU.
template <class T>
void run_forward(const AttentionParams& attention, std::size_t max_shared_bytes, const OpContext& context);
template <class T>
void run_backward(const AttentionParams& attention, const AttentionGradients& gradients, std::size_t max_shared_bytes,
                  const OpContext& context);

} // namespace triax::kernels_fused
