// SPDX-License-Identifier: Apache-2.0
// Masked softmax of whole score tensors, and attention over parts of the keys; attention_fwd.cpp and attention_bwd.cpp
// have the fused forms.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu_attention.hpp"
#include "cpu_kernels.hpp"

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
                       static_cast<float>(args.scale), args.delta.empty() ? nullptr : args.delta.as<const float>() + r,
                       n);
  });
}

void CpuKernels::do_softmax_from_lse(const SoftmaxFromLse& args, const OpContext&) {
  const std::int64_t heads = args.x.size(1), queries = args.x.size(2), keys = args.x.size(3);
  by_rows(rows_of(args.x), keys, [&](std::int64_t r) {
    const std::int64_t seen = seen_keys(args.mask, r / (heads * queries), r % queries, keys);
    loops_.softmax_from_lse(args.y.as<float>() + r * keys, args.x.as<const float>() + r * keys,
                            static_cast<float>(args.scale), args.lse.as<const float>()[r], seen, keys);
  });
}

void CpuKernels::do_attention_delta(const AttentionDelta& args, const OpContext&) {
  const std::int64_t queries = args.o.size(0), heads = args.o.size(2), width = args.o.size(3);
  by_rows(args.delta.elements(), width, [&](std::int64_t r) { // in the order of delta
    const std::int64_t sample = r / (heads * queries), head = r / queries % heads, query = r % queries;
    args.delta.as<float>()[r] = loops_.dot(attention::head_of<const float>(args.dout, sample, head).row(query),
                                           attention::head_of<const float>(args.o, sample, head).row(query), width);
  });
}

void CpuKernels::do_attention_merge(const AttentionMerge& args, const OpContext&) {
  const std::int64_t queries = args.o.size(0), heads = args.o.size(2), width = args.o.size(3);
  by_rows(args.lse.elements(), width, [&](std::int64_t r) { // in the order of lse
    const std::int64_t sample = r / (heads * queries), head = r / queries % heads, query = r % queries;
    float& lse = args.lse.as<float>()[r];
    float* o = attention::head_of<float>(args.o, sample, head).row(query);
    const float more = args.lse_more.as<const float>()[r], largest = std::max(lse, more);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    if (lse == -kInfinity && more == -kInfinity) { // no key is seen; NaN is kept
      std::fill_n(o, width, 0.0f);
      return;
    }
    const float merged = largest + std::log(std::exp(lse - largest) + std::exp(more - largest));
    loops_.combine(o, std::exp(lse - merged), attention::head_of<const float>(args.o_more, sample, head).row(query),
                   std::exp(more - merged), width);
    lse = merged;
  });
}

} // namespace triax::kernels_cpu
