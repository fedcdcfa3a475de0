// SPDX-License-Identifier: Apache-2.0
// Selects and launches the attention kernels for a type.
#include "attention.hpp"

#include "attention_kernels.hpp"
#include "attention_plan.hpp"
#include "triax/cuda/types.hpp"

namespace triax::kernels_fused {

Refusals attention_supported(const AttentionFwd& args) {
  return attention_supported(args.q, args.k);
}
Refusals attention_supported(const AttentionBwd& args) {
  return attention_supported(args.q, args.k);
}

std::size_t scratch_of(const AttentionFwd&) {
  return 0;
}
std::size_t scratch_of(const AttentionBwd& args) {
  return delta_bytes(args.q);
}

void launch(const AttentionFwd& args, std::span<std::byte>, cudaStream_t stream) {
  cuda::by_type(args.q.dtype(), [&](auto type) { run_forward<decltype(type)>(attention_of(args), stream); });
}
void launch(const AttentionBwd& args, std::span<std::byte> scratch, cudaStream_t stream) {
  cuda::by_type(args.q.dtype(), [&](auto type) {
    run_backward<decltype(type)>(attention_of(args), gradients_of(args, scratch.data()), stream);
  });
}

} // namespace triax::kernels_fused
