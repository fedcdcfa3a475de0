// SPDX-License-Identifier: Apache-2.0
// Attention backward: delta = rowsum(dout * o), which the other kernels subtract from dP. attention_backward.cuh is the
// overview.
#pragma once

#include "attention_plan.hpp"
#include "mma.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

/// Lanes that share a query of a head: one per 16 bytes of its row, at most a warp.
template <class T>
TRIAX_HD constexpr int delta_lanes(int head_dim) {
  int lanes = 1;
  while (lanes < static_cast<int>(kWarpSize) && lanes * kVec<T> < head_dim) lanes *= 2;
  return lanes;
}
template <class T>
TRIAX_HD constexpr int delta_rows(int head_dim) { // rows per warp at a time
  return static_cast<int>(kWarpSize) / delta_lanes<T>(head_dim);
}

/// One group of 1 to 32 lanes per query of a head; a warp has delta_rows() groups. Lanes take the same elements whether
/// or not these are read in vectors.
template <class T>
__global__ void __launch_bounds__(kBlockSize)
    attention_backward_delta(const __grid_constant__ Attention attention,
                             const __grid_constant__ AttentionGradients gradients) {
  constexpr std::int64_t kWarps = kBlockSize / kWarpSize;
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  const int lanes = delta_lanes<T>(size.head_dim), rows_of_warp = delta_rows<T>(size.head_dim);
  const int row_of_lane = lane_index() / lanes, lane_of_row = lane_index() % lanes;
  const bool whole = attention.o.vec16 && gradients.dout.vec16;
  for (std::int64_t first = (blockIdx.x * kWarps + warp_index()) * rows_of_warp; first < rows;
       first += gridDim.x * kWarps * rows_of_warp) {
    const std::int64_t i = first + row_of_lane;
    // Heads are contiguous in memory, so adjacent lanes take adjacent heads.
    const std::int64_t position = i / size.heads, head = i - position * size.heads;
    const std::int64_t query = position / size.samples, sample = position - query * size.samples;
    float sum = 0;
    if (i < rows) {
      const T* o = head_of<T>(attention.o, sample, head) + query * attention.o.row_stride;
      const T* dout = head_of<T>(gradients.dout, sample, head) + query * gradients.dout.row_stride;
      for (int column = lane_of_row * kVec<T>; column < size.head_dim; column += lanes * kVec<T>) {
        const int valid = valid_elements<T>(size.head_dim, column);
        const Floats<T> x = load(o + column, valid, whole), y = load(dout + column, valid, whole);
#pragma unroll
        for (int k = 0; k < kVec<T>; ++k) sum += x[k] * y[k];
      }
    }
#pragma unroll
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
      if (distance < lanes) sum += __shfl_xor_sync(kFullMask, sum, distance);
    }
    if (i < rows && lane_of_row == 0) gradients.delta[(sample * size.heads + head) * size.queries + query] = sum;
  }
}

} // namespace triax::kernels_fused
