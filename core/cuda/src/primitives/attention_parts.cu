// SPDX-License-Identifier: Apache-2.0
// Kernels of attention over parts of the keys: delta of its backward, and the merge of two parts. A warp for each query
// of a head.
#include <cmath>

#include "block.cuh"
#include "head_rows.cuh"
#include "internal.hpp"
#include "triax/cuda/launching.cuh"

namespace triax::cuda {

namespace {

/// Numbers of the queries of all heads in the order of a statistic [b, a, s].
struct Queries {
  std::int64_t count, heads, positions;
  __device__ std::int64_t sample(std::int64_t i) const { return i / (heads * positions); }
  __device__ std::int64_t head(std::int64_t i) const { return i / positions % heads; }
  __device__ std::int64_t position(std::int64_t i) const { return i % positions; }
};
Queries queries_of(const TensorView& x) {
  return {x.size(0) * x.size(1) * x.size(2), x.size(2), x.size(0)};
}

/// One warp per query of a head.
///
/// delta = sum over a row of dout * o.
template <class T>
__global__ void sum_dout_o(float* delta, HeadRows<const T> dout, HeadRows<const T> o, Queries queries, std::int64_t d) {
  const auto lane = static_cast<int>(threadIdx.x % kWarpSize);
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first / kWarpSize; i < queries.count; i += stride.step / kWarpSize) {
    const T* x = dout.row(queries.position(i), queries.sample(i), queries.head(i));
    const T* y = o.row(queries.position(i), queries.sample(i), queries.head(i));
    float sum = 0;
    for (std::int64_t j = lane; j < d; j += kWarpSize) sum += value_of(x[j]) * value_of(y[j]);
    sum = warp_reduce(sum, Sum{});
    if (lane == 0) delta[i] = sum;
  }
}

/// One warp per query of a head.
template <class T>
__global__ void merge_parts(HeadRows<T> o, float* lse, HeadRows<const T> o_more, const float* lse_more, Queries queries,
                            std::int64_t d) {
  const auto lane = static_cast<int>(threadIdx.x % kWarpSize);
  const GridStride stride = grid_stride();
  for (std::int64_t i = stride.first / kWarpSize; i < queries.count; i += stride.step / kWarpSize) {
    const float one = lse[i], more = lse_more[i], largest = fmaxf(one, more);
    const bool sees_none = one == -INFINITY && more == -INFINITY; // NaN is kept
    const float merged = sees_none ? largest : largest + logf(expf(one - largest) + expf(more - largest));
    const float weight = expf(one - merged), weight_more = expf(more - merged);
    T* to = o.row(queries.position(i), queries.sample(i), queries.head(i));
    const T* from = o_more.row(queries.position(i), queries.sample(i), queries.head(i));
    for (std::int64_t j = lane; j < d; j += kWarpSize)
      to[j] = rounded<T>(sees_none ? 0.0f : weight * value_of(to[j]) + weight_more * value_of(from[j]));
    __syncwarp(); // all lanes have read lse
    if (lane == 0) lse[i] = merged;
  }
}

} // namespace

void Primitives::do_attention_delta(const AttentionDelta& args, const OpContext& context) {
  const Queries queries = queries_of(args.o);
  if (queries.count == 0) return;
  const Launch launch(Op::attention_delta, grid_of_elements(queries.count * kWarpSize), context);
  by_type(args.o.dtype(), [&]<class T>(T) {
    launch(sum_dout_o<T>, args.delta.as<float>(), head_rows<const T>(args.dout), head_rows<const T>(args.o), queries,
           args.o.size(3));
  });
}

void Primitives::do_attention_merge(const AttentionMerge& args, const OpContext& context) {
  const Queries queries = queries_of(args.o);
  if (queries.count == 0) return;
  const Launch launch(Op::attention_merge, grid_of_elements(queries.count * kWarpSize), context);
  by_type(args.o.dtype(), [&]<class T>(T) {
    launch(merge_parts<T>, head_rows<T>(args.o), args.lse.as<float>(), head_rows<const T>(args.o_more),
           args.lse_more.as<const float>(), queries, args.o.size(3));
  });
}

} // namespace triax::cuda
