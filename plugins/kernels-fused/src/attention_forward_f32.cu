// SPDX-License-Identifier: Apache-2.0
// Attention forward kernels for f32.
#include "attention_forward.cuh"

namespace triax::kernels_fused {

template void run_forward<float>(const AttentionParams&, std::size_t, const OpContext&);

} // namespace triax::kernels_fused
