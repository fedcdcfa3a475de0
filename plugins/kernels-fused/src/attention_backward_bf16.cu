// SPDX-License-Identifier: Apache-2.0
// Attention backward kernels for bf16.
#include "attention_backward.cuh"

namespace triax::kernels_fused {

template void run_backward<Bf16>(const AttentionParams&, const AttentionGradients&, std::size_t, const OpContext&);

} // namespace triax::kernels_fused
