// SPDX-License-Identifier: Apache-2.0
// Reductions over the threads of a warp or a block, in an order that never changes.
//
// GPU threads: all threads that share a row call these together, and all get the result.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernel_sizes.hpp"
#include "warp.cuh"

namespace triax::kernels_fused {

struct Sum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
/// Drops a NaN in b: it reaches the result through the sum of exponentials. Not fmaxf, which prefers +0 to -0: a
/// maximum of 0 has the sign of the first.
struct Max {
  __device__ __forceinline__ float operator()(float a, float b) const { return a < b ? b : a; }
};

/// Two sums that are reduced together.
struct SumPair {
  float first = 0, second = 0;
};
__device__ __forceinline__ SumPair operator+(SumPair a, SumPair b) {
  return {a.first + b.first, a.second + b.second};
}

/// The maximum of some x, and the sum of their exp(x - max).
struct ExpSum {
  float max = -INFINITY, sum = 0;
};
/// The ExpSum of the x of both (Milakov & Gimelshein 2018, section 3.1).
struct MergeExpSums {
  __device__ __forceinline__ ExpSum operator()(ExpSum a, ExpSum b) const {
    const float max = Max{}(a.max, b.max);
    if (max == -INFINITY) return {max, a.sum + b.sum}; // no x, or only -infinity
    return {max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
  }
};

template <class T>
__device__ __forceinline__ T shuffle_xor(T value, unsigned distance) {
  return __shfl_xor_sync(kFullMask, value, distance);
}
__device__ __forceinline__ SumPair shuffle_xor(SumPair value, unsigned distance) {
  return {shuffle_xor(value.first, distance), shuffle_xor(value.second, distance)};
}
__device__ __forceinline__ ExpSum shuffle_xor(ExpSum value, unsigned distance) {
  return {shuffle_xor(value.max, distance), shuffle_xor(value.sum, distance)};
}
template <class T>
__device__ __forceinline__ T broadcast_lane0(T value) {
  return __shfl_sync(kFullMask, value, 0);
}
__device__ __forceinline__ SumPair broadcast_lane0(SumPair value) {
  return {broadcast_lane0(value.first), broadcast_lane0(value.second)};
}
__device__ __forceinline__ ExpSum broadcast_lane0(ExpSum value) {
  return {broadcast_lane0(value.max), broadcast_lane0(value.sum)};
}

template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op) {
#pragma unroll
  for (unsigned distance = kWarpSize / 2; distance > 0; distance /= 2) value = op(value, shuffle_xor(value, distance));
  // op(a, b) and op(b, a) may differ in bits: Max of 0 and -0, and MergeExpSums, of whose products nvcc contracts one
  // into an fma. Sums do not.
  return broadcast_lane0(value);
}

/// Over the kThreads threads of a row: a warp, or the whole block, whose warps are combined in order.
///
///   RowReduce<Mapping::kThreadsPerRow> reduce;
///   const float sum = reduce.sum(sum_of_thread);
///
/// One object per kernel: two would use the same buffers, and one could write a buffer that threads still read for the
/// other.
template <unsigned kThreads>
class RowReduce {
  static_assert(kThreads == kWarpSize || kThreads == kBlockSize);

 public:
  template <class T>
  __device__ __forceinline__ T sum(T value) {
    return reduce(value, Sum{});
  }
  __device__ __forceinline__ float max(float value) { return reduce(value, Max{}); }
  __device__ __forceinline__ ExpSum merge(ExpSum value) { return reduce(value, MergeExpSums{}); }

 private:
  template <class T, class Op>
  __device__ __forceinline__ T reduce(T value, Op op) {
    value = warp_reduce(value, op);
    if constexpr (kThreads == kWarpSize) {
      return value;
    } else {
      return over_warps(value, op);
    }
  }

  /// Calls alternate between two buffers, so one barrier is enough. A thread writes a buffer again only after the
  /// barrier of the call in between, before which every thread has read it. This also holds if that call is of another
  /// T or Op, which has separate buffers.
  template <class T, class Op>
  __device__ __forceinline__ T over_warps(T value, Op op) {
    constexpr unsigned kWarps = kThreads / kWarpSize;
    // bytes: a __shared__ variable cannot have the initializers of ExpSum and SumPair
    __shared__ alignas(T) std::byte memory[2 * kWarps * sizeof(T)];
    T* warp_values = reinterpret_cast<T*>(memory) + buffer_ * kWarps;
    buffer_ ^= 1u;
    if (lane_index() == 0) warp_values[warp_index()] = value;
    __syncthreads();
    T result = warp_values[0];
    for (unsigned warp = 1; warp < kWarps; ++warp) result = op(result, warp_values[warp]);
    return result;
  }

  unsigned buffer_ = 0;
};
using BlockReduce = RowReduce<kBlockSize>;

} // namespace triax::kernels_fused
