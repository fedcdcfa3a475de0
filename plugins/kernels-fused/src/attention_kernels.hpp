// SPDX-License-Identifier: Apache-2.0
// Launches of attention for each type; each is compiled in a separate file.
//
// Threads: any. Ownership: all memory is the caller's. Blocking: never. Errors: Error if CUDA rejects the launch.
#pragma once

#include <cuda_runtime_api.h>

#include "attention_plan.hpp"
#include "triax/half.hpp"

namespace triax::kernels_fused {

template <class T>
void run_forward(const Attention& attention, cudaStream_t stream);
template <class T>
void run_backward(const Attention& attention, const AttentionGradients& gradients, cudaStream_t stream);

} // namespace triax::kernels_fused
