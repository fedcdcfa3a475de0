// SPDX-License-Identifier: Apache-2.0
// Masked softmax, a block for each row.
#include <cmath>

#include "block.cuh"
#include "internal.hpp"
#include "triax/cuda/launching.cuh"
#include "triax/cuda/mask.hpp"

namespace triax::cuda {

namespace {

/// One block per row.
///
/// x, y [b, heads, queries, keys]; y may be x: an element is written by the thread that read it last. lse may be null.
template <class T>
__global__ void softmax_forward(T* y, const T* x, float* lse, MaskPlan mask, std::int64_t rows, std::int64_t heads,
                                std::int64_t queries, std::int64_t keys, float scale) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t seen = seen_keys(mask, row / (heads * queries), row % queries, keys);
    const T* in = x + row * keys;
    T* out = y + row * keys;
    float max = -INFINITY, sum = 0;
    for (std::int64_t k = threadIdx.x; k < seen; k += blockDim.x) max = fmaxf(max, scale * value_of(in[k]));
    max = block_max(max);
    for (std::int64_t k = threadIdx.x; k < seen; k += blockDim.x) sum += expf(scale * value_of(in[k]) - max);
    sum = block_sum(sum);
    for (std::int64_t k = threadIdx.x; k < keys; k += blockDim.x)
      out[k] = rounded<T>(k < seen ? expf(scale * value_of(in[k]) - max) / sum : 0.0f);
    if (lse && threadIdx.x == 0) lse[row] = max + logf(sum); // -infinity where no key is seen
  }
}

/// One block per row.
///
/// y = exp(scale * x - lse) for the keys that a row sees, else 0; y may be x.
template <class T>
__global__ void probabilities_from_lse(T* y, const T* x, const float* lse, MaskPlan mask, std::int64_t rows,
                                       std::int64_t heads, std::int64_t queries, std::int64_t keys, float scale) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t seen = seen_keys(mask, row / (heads * queries), row % queries, keys);
    for (std::int64_t k = threadIdx.x; k < keys; k += blockDim.x)
      y[row * keys + k] = rounded<T>(k < seen ? expf(scale * value_of(x[row * keys + k]) - lse[row]) : 0.0f);
  }
}

/// One block per row.
///
/// dx may be dy. delta may be null: then it is the sum of dy * y.
template <class T>
__global__ void softmax_backward(T* dx, const T* dy, const T* y, const float* delta, std::int64_t rows, std::int64_t n,
                                 float scale) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::int64_t first = row * n;
    float sum = 0;
    if (delta) {
      sum = delta[row];
    } else {
      for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x)
        sum += value_of(dy[first + j]) * value_of(y[first + j]);
      sum = block_sum(sum);
    }
    for (std::int64_t j = threadIdx.x; j < n; j += blockDim.x)
      dx[first + j] = rounded<T>(scale * value_of(y[first + j]) * (value_of(dy[first + j]) - sum));
  }
}

} // namespace

void Primitives::do_softmax_fwd(const SoftmaxFwd& args, const OpContext& context) {
  over_rows(Op::softmax_fwd, args.x, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(softmax_forward<T>, args.y.as<T>(), args.x.as<const T>(), args.lse.as<float>(), mask_plan(args.mask), rows,
           args.x.size(1), args.x.size(2), args.x.size(3), static_cast<float>(args.scale));
  });
}

void Primitives::do_softmax_bwd(const SoftmaxBwd& args, const OpContext& context) {
  over_rows(Op::softmax_bwd, args.y, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(softmax_backward<T>, args.dx.as<T>(), args.dy.as<const T>(), args.y.as<const T>(),
           args.delta.as<const float>(), rows, args.y.size(-1), static_cast<float>(args.scale));
  });
}

void Primitives::do_softmax_from_lse(const SoftmaxFromLse& args, const OpContext& context) {
  over_rows(Op::softmax_from_lse, args.x, context, [&]<class T>(T, const Launch& launch, std::int64_t rows) {
    launch(probabilities_from_lse<T>, args.y.as<T>(), args.x.as<const T>(), args.lse.as<const float>(),
           mask_plan(args.mask), rows, args.x.size(1), args.x.size(2), args.x.size(3), static_cast<float>(args.scale));
  });
}

} // namespace triax::cuda
