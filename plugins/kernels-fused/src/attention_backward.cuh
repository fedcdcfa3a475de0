// SPDX-License-Identifier: Apache-2.0
// Attention backward, in three kernels: delta = rowsum(dout * o); the gradient of queries, with a block per tile of
// queries; the gradients of keys and values, with a block per tile of keys. The last two recompute the probabilities
// from q, k and lse (Dao, "FlashAttention-2", 2023, algorithm 2).
//
// Threads: run_backward(): any. Ownership: all memory is the caller's. Blocking: never. Errors: Error if CUDA rejects
// the launch.
//
// A single kernel for all gradients would need five products instead of seven. But concurrent blocks would add to the
// same dq: in no fixed order, or in separate buffers that grow with s x s.
#pragma once

#include "attention_keys.cuh"
#include "attention_launch.cuh"
#include "attention_queries.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

/// Lanes that share a query of a head: one per 16 bytes of its row, at most a warp.
template <class T>
TRIAX_HD constexpr int delta_lanes(int width) {
  int lanes = 1;
  while (lanes < 32 && lanes * kVec<T> < width) lanes *= 2;
  return lanes;
}
template <class T>
TRIAX_HD constexpr int delta_rows(int width) { // rows per warp at a time
  return 32 / delta_lanes<T>(width);
}

/// Several lanes per query of each head. They take the same elements whether or not these are read in 16-byte pieces.
template <class T>
__global__ void __launch_bounds__(cuda::kThreads)
    attention_delta(const __grid_constant__ Attention attention, const __grid_constant__ AttentionGradients gradients) {
  constexpr std::int64_t kWarps = cuda::kThreads / 32;
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  const int lanes = delta_lanes<T>(size.width), rows_of_warp = delta_rows<T>(size.width);
  const int row_of_lane = lane_index() / lanes, lane_of_row = lane_index() % lanes;
  const bool aligned = attention.o.chunks && gradients.dout.chunks;
  for (std::int64_t first = (blockIdx.x * kWarps + warp_index()) * rows_of_warp; first < rows;
       first += gridDim.x * kWarps * rows_of_warp) {
    const std::int64_t i = first + row_of_lane;
    // Heads are contiguous in memory, so adjacent lanes take adjacent heads.
    const std::int64_t place = i / size.heads, head = i - place * size.heads;
    const std::int64_t query = place / size.samples, sample = place - query * size.samples;
    float sum = 0;
    if (i < rows) {
      const T* o = head_of<T>(attention.o, sample, head) + query * attention.o.row;
      const T* dout = head_of<T>(gradients.dout, sample, head) + query * gradients.dout.row;
      for (int column = lane_of_row * kVec<T>; column < size.width; column += lanes * kVec<T>) {
        const int valid = valid_elements<T>(size.width, column);
        const Floats<T> x = load(o + column, valid, aligned), y = load(dout + column, valid, aligned);
#pragma unroll
        for (int k = 0; k < kVec<T>; ++k) sum += x.at[k] * y.at[k];
      }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      if (distance < lanes) sum += __shfl_xor_sync(kAllLanes, sum, distance);
    }
    if (i < rows && lane_of_row == 0) gradients.delta[(sample * size.heads + head) * size.queries + query] = sum;
  }
}

template <class T>
void run_backward(const Attention& attention, const AttentionGradients& gradients, cudaStream_t stream) {
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  const auto grid = cuda::grid_of_rows(tiles_of(rows, cuda::kThreads / 32 * delta_rows<T>(size.width)));
  launch_tiles(attention_delta<T>, rows == 0 ? 0 : grid.blocks, cuda::kThreads, 0, stream, attention, gradients);
  with_width(size.width, [&](auto width) {
    using Queries = typename TilesFor<T, width()>::Queries;
    using Keys = typename TilesFor<T, width()>::Keys;
    launch_tiles(attention_queries<Queries>, query_blocks<Queries>(size), Queries::kThreads, kQueriesShared<Queries>,
                 stream, attention, gradients);
    launch_tiles(attention_keys<Keys>, key_blocks<Keys>(size), Keys::kThreads, kKeysShared<Keys>, stream, attention,
                 gradients);
  });
}

} // namespace triax::kernels_fused
