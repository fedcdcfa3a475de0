// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over the threads of a warp or a block, in an order that never changes.
//
// All threads of a warp, or of a block of kBlockSize, call these together, and all get the result. Inside a warp the
// halves swap and add (each pair adds the same two numbers, so all lanes hold the same bits); the warps' results are
// added in their order.
#pragma once

#include "triax/cuda/launch.hpp"

namespace triax::cuda {

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <class T, class Op>
__device__ T warp_reduce(T value, Op op) {
  for (unsigned distance = kWarpSize / 2; distance > 0; distance /= 2)
    value = op(value, __shfl_xor_sync(kFullMask, value, distance));
  return value;
}

template <class T, class Op>
__device__ T block_reduce(T value, Op op) {
  constexpr unsigned kWarps = kBlockSize / kWarpSize;
  __shared__ T warp_values[kWarps];
  value = warp_reduce(value, op);
  __syncthreads(); // the call before may still be reading
  if (threadIdx.x % kWarpSize == 0) warp_values[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  T all = warp_values[0];
  for (unsigned warp = 1; warp < kWarps; ++warp) all = op(all, warp_values[warp]);
  return all;
}

template <class T>
__device__ T block_sum(T value) {
  return block_reduce(value, Sum{});
}
__device__ inline float block_max(float value) {
  return block_reduce(value, Max{});
}

} // namespace triax::cuda
