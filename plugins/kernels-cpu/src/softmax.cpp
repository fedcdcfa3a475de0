// SPDX-License-Identifier: Apache-2.0
// Masked softmax of whole score tensors; attention_fwd.cpp has the fused form.
#include "kernels.hpp"

namespace triax::kernels_cpu {

std::int64_t seen_keys(const Mask& mask, std::int64_t sample, std::int64_t query, std::int64_t keys) {
  std::int64_t count = keys;
  if (mask.kind == Mask::Kind::causal) count = std::min(count, mask.q0 + query + 1 - mask.k0);
  if (!mask.lengths.empty()) count = std::min(count, mask.lengths.as<const std::int32_t>()[sample] - mask.k0);
  return std::max<std::int64_t>(count, 0);
}

void CpuKernels::do_softmax_fwd(const SoftmaxFwd& args, const OpContext&) {
  const std::int64_t heads = args.x.size(1), queries = args.x.size(2), keys = args.x.size(3);
  by_rows(rows_of(args.x), keys, [&](std::int64_t r) {
    const std::int64_t seen = seen_keys(args.mask, r / (heads * queries), r % queries, keys);
    const float lse = loops_.softmax(args.y.as<float>() + r * keys, args.x.as<const float>() + r * keys,
                                     static_cast<float>(args.scale), seen, keys);
    if (!args.lse.empty()) args.lse.as<float>()[r] = lse;
  });
}

void CpuKernels::do_softmax_bwd(const SoftmaxBwd& args, const OpContext&) {
  const std::int64_t n = args.y.size(-1);
  by_rows(rows_of(args.y), n, [&](std::int64_t r) {
    loops_.softmax_bwd(args.dx.as<float>() + r * n, args.dy.as<const float>() + r * n, args.y.as<const float>() + r * n,
                       static_cast<float>(args.scale), n);
  });
}

} // namespace triax::kernels_cpu
