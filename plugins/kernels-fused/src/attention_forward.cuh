// SPDX-License-Identifier: Apache-2.0
// Attention forward: a block has a tile of queries of one head, and iterates over the keys they see, tile by tile. For
// each query it keeps the largest score and the sum of exponentials so far (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao, "FlashAttention-2", 2023, algorithm 1).
//
// Threads: run_forward(): any. Ownership: all memory is the caller's. Blocking: never. Errors: Error if CUDA rejects
// the launch.
#pragma once

#include "attention_launch.cuh"
#include "attention_steps.cuh"

namespace triax::kernels_fused {

/// Of the warp's rows; four lanes hold a row.
template <class Tile>
struct SoftmaxRows {
  float largest[Tile::kStrips][2]; // largest score so far, without scale
  float sum[Tile::kStrips][2];     // of exponentials; until the end, only over the lane's columns
};

/// Replaces scores by exp(score - largest so far), and rescales earlier sums when the largest score changes.
template <class Tile>
__device__ __forceinline__ void online_softmax(Fragment<Tile::kStrips, Tile::kColumns>& scores,
                                               Fragment<Tile::kStrips, Tile::kWidth>& out, SoftmaxRows<Tile>& rows,
                                               float scale) {
  constexpr int kTiles = Tile::kColumns / 8;
  constexpr float kLowest = -INFINITY;
  float rescale[Tile::kStrips][2], base[Tile::kStrips][2];
  bool changed = false;
#pragma unroll
  for (int row = 0; row < 2 * Tile::kStrips; ++row) {
    float& largest = rows.largest[row / 2][row % 2];
    float now = largest;
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) now = fmaxf(now, scores[row / 2][i / 2][row % 2 * 2 + i % 2]);
    now = fmaxf(now, __shfl_xor_sync(kAllLanes, now, 1));
    now = fmaxf(now, __shfl_xor_sync(kAllLanes, now, 2));
    base[row / 2][row % 2] = now == kLowest ? 0.0f : now * scale; // no key so far
    rescale[row / 2][row % 2] =
        now == largest ? 1.0f : exponential<typename Tile::T>(largest * scale - base[row / 2][row % 2]);
    changed = changed || now != largest;
    largest = now;
  }
  if (__any_sync(kAllLanes, changed)) { // else all factors are 1
#pragma unroll
    for (int row = 0; row < 2 * Tile::kStrips; ++row) {
      rows.sum[row / 2][row % 2] *= rescale[row / 2][row % 2];
#pragma unroll
      for (int i = 0; i < Tile::kWidth / 4; ++i) out[row / 2][i / 2][row % 2 * 2 + i % 2] *= rescale[row / 2][row % 2];
    }
  }
#pragma unroll
  for (int row = 0; row < 2 * Tile::kStrips; ++row) {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      float& score = scores[row / 2][i / 2][row % 2 * 2 + i % 2];
      score = exponential<typename Tile::T>(score * scale - base[row / 2][row % 2]);
      rows.sum[row / 2][row % 2] += score;
    }
  }
}

template <class Tile>
__device__ __forceinline__ void write_rows(const Attention& attention, const TileCoordinates& at,
                                           Fragment<Tile::kStrips, Tile::kWidth>& out, SoftmaxRows<Tile>& rows,
                                           float scale, std::int64_t first) {
  using T = typename Tile::T;
  const AttentionSizes& size = attention.size;
  float factors[Tile::kStrips][2];
  float* lse = attention.lse + (at.sample * size.heads + at.head) * size.queries;
#pragma unroll
  for (int row = 0; row < 2 * Tile::kStrips; ++row) {
    float sum = rows.sum[row / 2][row % 2];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    factors[row / 2][row % 2] = sum == 0 ? 0.0f : attention.drop.scale / sum; // 0: the query saw no key
    const std::int64_t query = first + 8 * row + lane_index() / 4;
    if (lane_index() % 4 == 0 && query < size.queries) {
      lse[query] = sum == 0 ? -INFINITY : rows.largest[row / 2][row % 2] * scale * kToNatural<T> + logf(sum);
    }
  }
  store_fragment<Tile>(out, factors, head_of<T>(attention.o, at.sample, at.head), attention.o, first, size.queries, 0,
                       size.width);
}

template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kMinBlocks)
    attention_forward(const __grid_constant__ Attention attention) {
  using T = typename Tile::T;
  using Shared = SharedMemory<Tile, 1>;
  const AttentionSizes& size = attention.size;
  const QueryTile<Tile> tile(attention, blockIdx.x);
  // With a negative scale, flips the signs of q, so that the largest product is the largest score. Replaces a scale of
  // 0 by the smallest normal number, because hidden scores are -infinity, and -infinity times 0 is NaN.
  const float sign = attention.scale < 0 ? -1.0f : 1.0f;
  const float scale = fmaxf(attention.scale * sign * kFromNatural<T>, 0x1p-126f);

  const int row = warp_index() * Tile::kWarpRows; // first row of the warp
  Fragment<Tile::kStrips, Tile::kWidth> out{};
  SoftmaxRows<Tile> rows;
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) {
    rows.largest[i / 2][i % 2] = -INFINITY;
    rows.sum[i / 2][i % 2] = 0;
  }
  if (tile.tiles > 0) {
    load_tile<Tile, Tile::kRows>(Shared::resident(0), head_of<T>(attention.q, tile.at.sample, tile.at.head),
                                 attention.q, tile.first, tile.last, size.width);
    tile.template load_keys<Shared>(attention, 0);
  }
  for (int index = 0; index < tile.tiles; ++index) {
    cp_async_wait_all();
    __syncthreads(); // this tile has arrived, and all threads have finished the previous one
    if (index + 1 < tile.tiles) tile.template load_keys<Shared>(attention, index + 1);
    const int stage = index & 1;
    Fragment<Tile::kStrips, Tile::kColumns> scores{};
    add_abt<Tile>(scores, Shared::resident(0) + Tile::offset(row, 0), Shared::streamed(stage, 0), sign);
    const TileMask mask = tile.mask(attention, index);
    if (!mask.hides_none(Tile::kColumns)) mask_scores<Tile>(scores, mask, row, -INFINITY);
    online_softmax<Tile>(scores, out, rows, scale);
    if (tile.drops) drop_scores<Tile>(scores, Shared::resident_bits(stage), row);
    add_ab<Tile>(out, scores, Shared::streamed(stage, 1));
  }
  write_rows<Tile>(attention, tile.at, out, rows, scale, tile.first + row);
}

template <class T>
void run_forward(const Attention& attention, cudaStream_t stream) {
  with_tiles<T>(attention.size.width, max_shared_bytes(), [&]<class For>(For) {
    using Tile = typename For::Forward;
    launch_attention("attention_forward", attention_forward<Tile>,
                     {query_blocks<Tile>(attention.size), Tile::kThreads, kForwardShared<Tile>}, stream, attention);
  });
}

} // namespace triax::kernels_fused
