// SPDX-License-Identifier: Apache-2.0
// Attention forward: a block has a tile of queries of one head, and iterates over the keys they see, tile by tile. For
// each query it keeps the largest score and the sum of exponentials so far (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao, "FlashAttention-2", 2023, algorithm 1).
//
// Host threads, blocking, errors: attention_kernels.hpp.
#pragma once

#include "attention_steps.cuh"
#include "exp.cuh"

namespace triax::kernels_fused {

/// The softmax of the warp's rows; four lanes hold a row.
template <class Config>
struct SoftmaxRows {
  float row_max[2 * Config::kMmaM]; // largest score so far, without scale
  float row_sum[2 * Config::kMmaM]; // of exponentials; until the end, only over the lane's columns
};

/// Replaces scores by exp(score - largest so far), and rescales earlier sums when the largest score changes.
template <class Config>
__device__ __forceinline__ void online_softmax(Fragment<Config::kMmaM, Config::kStreamedRows>& scores,
                                               Fragment<Config::kMmaM, Config::kHeadDim>& out,
                                               SoftmaxRows<Config>& rows, float scale_in_base) {
  constexpr int kRows = 2 * Config::kMmaM, kColumns = Config::kStreamedRows / 4; // of the lane
  constexpr float kLowest = -INFINITY;
  float rescale[kRows], base[kRows];
  bool changed = false;
#pragma unroll
  for (int row = 0; row < 2 * Config::kMmaM; ++row) {
    float& row_max = rows.row_max[row];
    float now = row_max;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) now = fmaxf(now, at(scores, row, i));
    now = quad_reduce(now, [](float a, float b) { return fmaxf(a, b); });
    base[row] = now == kLowest ? 0.0f : now * scale_in_base; // no key so far
    rescale[row] = now == row_max ? 1.0f : exp_in_base<typename Config::T>(row_max * scale_in_base - base[row]);
    changed = changed || now != row_max;
    row_max = now;
  }
  if (__any_sync(kFullMask, changed)) { // else all factors are 1
#pragma unroll
    for (int row = 0; row < 2 * Config::kMmaM; ++row) {
      rows.row_sum[row] *= rescale[row];
#pragma unroll
      for (int i = 0; i < Config::kHeadDim / 4; ++i) at(out, row, i) *= rescale[row];
    }
  }
#pragma unroll
  for (int row = 0; row < 2 * Config::kMmaM; ++row) {
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      float& score = at(scores, row, i);
      score = exp_in_base<typename Config::T>(score * scale_in_base - base[row]);
      rows.row_sum[row] += score;
    }
  }
}

template <class Config>
__device__ __forceinline__ void write_rows(const AttentionParams& attention, const QueryTile<Config>& tile,
                                           Fragment<Config::kMmaM, Config::kHeadDim>& out, SoftmaxRows<Config>& rows,
                                           float scale_in_base, std::int64_t query0) {
  using T = typename Config::T;
  const AttentionSizes& size = attention.size;
  float factors[2 * Config::kMmaM];
  float* lse = attention.lse + (tile.sample * size.heads + tile.head) * size.queries;
#pragma unroll
  for (int row = 0; row < 2 * Config::kMmaM; ++row) {
    const float row_sum = quad_reduce(rows.row_sum[row], Sum{});
    factors[row] = row_sum == 0 ? 0.0f : attention.drop.scale / row_sum; // 0: the query saw no key
    const std::int64_t query = query0 + 8 * row + lane_index() / 4;
    if (lane_index() % 4 == 0 && query < size.queries) {
      lse[query] = row_sum == 0 ? -INFINITY : rows.row_max[row] * scale_in_base * kLnOfBase<T> + logf(row_sum);
    }
  }
  store_fragment<Config>(out, factors, head_of<T>(attention.o, tile.sample, tile.head), query0, size.queries, 0,
                         size.head_dim);
}

/// One block per tile of queries of a head, 16 * kMmaM queries per warp.
template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kMinBlocks)
    attention_forward(const __grid_constant__ AttentionParams attention) {
  using T = typename Config::T;
  using Shared = SharedMemory<Config, 1>;
  const AttentionSizes& size = attention.size;
  const QueryTile<Config> tile(attention, blockIdx.x);
  T* const s_q = Shared::resident(0);
  const auto s_k = [](int stage) { return Shared::streamed(stage, 0); };
  const auto s_v = [](int stage) { return Shared::streamed(stage, 1); };
  // With a negative scale, flips the signs of q, so that the largest product is the largest score. Replaces a scale of
  // 0 by the smallest normal number, because hidden scores are -infinity, and -infinity times 0 is NaN. Not fmaxf(),
  // which drops a NaN.
  const float sign = attention.scale < 0 ? -1.0f : 1.0f, scale_size = attention.scale * sign * kLogOfE<T>;
  const float scale_in_base = scale_size < 0x1p-126f ? 0x1p-126f : scale_size;

  // Starts to copy keys and values of a tile to a stage, and makes its dropout bits.
  const Head<T> k = head_of<T>(attention.k, tile.sample, tile.key_head),
                v = head_of<T>(attention.v, tile.sample, tile.key_head);
  const auto load_stage = [&](int key_tile) {
    const int stage = key_tile & 1;
    const std::int64_t key0 = tile.first_key(key_tile);
    load_tile<Config, Config::kStreamedRows>(s_k(stage), k, key0, tile.key_end, size.head_dim);
    load_tile<Config, Config::kStreamedRows>(s_v(stage), v, key0, tile.key_end, size.head_dim);
    if (tile.drops)
      make_dropout_bits<Config, Config::kResidentRows, Config::kStreamedRows>(
          Shared::resident_bits(stage), attention, tile.philox_sample, tile.head, tile.query0, key0);
  };

  const int warp_row = warp_index() * Config::kWarpRows; // the warp's first row of the tile
  Fragment<Config::kMmaM, Config::kHeadDim> out{};
  SoftmaxRows<Config> rows;
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) {
    rows.row_max[i] = -INFINITY;
    rows.row_sum[i] = 0;
  }
  if (tile.key_tiles > 0) {
    load_tile<Config, Config::kResidentRows>(s_q, head_of<T>(attention.q, tile.sample, tile.head), tile.query0,
                                             tile.query_end, size.head_dim);
    load_stage(0);
  }
  for (int key_tile = 0; key_tile < tile.key_tiles; ++key_tile) {
    cp_async_wait_all();
    __syncthreads(); // this tile has arrived, and all threads have finished the previous one
    if (key_tile + 1 < tile.key_tiles) load_stage(key_tile + 1);
    const int stage = key_tile & 1;
    Fragment<Config::kMmaM, Config::kStreamedRows> scores{};
    mma_abt<Config>(scores, s_q + Config::offset(warp_row, 0), s_k(stage), sign);
    const TileMask mask = tile.mask(attention, key_tile);
    if (!mask.is_full(Config::kStreamedRows)) mask_scores<Config>(scores, mask, warp_row, -INFINITY);
    online_softmax<Config>(scores, out, rows, scale_in_base);
    auto& p = scores; // times the row's sum
    if (tile.drops) drop_scores<Config>(p, Shared::resident_bits(stage), warp_row);
    mma_ab<Config>(out, p, s_v(stage));
  }
  write_rows<Config>(attention, tile, out, rows, scale_in_base, tile.query0 + warp_row);
}

template <class T>
void run_forward(const AttentionParams& attention, std::size_t max_shared_bytes, const OpContext& context) {
  dispatch_head_dim<T>(attention.size.head_dim, max_shared_bytes, [&]<class Sizes>(Sizes) {
    using Config = typename Sizes::Forward;
    const cuda::Launch launch(
        "attention_forward", tiled_grid<Config>(query_blocks<Config>(attention.size), kForwardShared<Config>), context);
    launch(attention_forward<Config>, attention);
  });
}

} // namespace triax::kernels_fused
