// SPDX-License-Identifier: Apache-2.0
// Attention backward, gradient of queries: a block has a tile of queries of one head, and iterates over the keys they
// see, tile by tile. attention_backward.cuh is the overview.
#pragma once

#include "attention_steps.cuh"
#include "softmax_exp.cuh"

namespace triax::kernels_fused {

/// One block per tile of queries of a head (and per part of the columns of dq), 16 * kMmaM queries per warp.
///
/// dq = scale * dS k, where dS = P * (dropout(dP) - delta) and dP = dout v^T.
template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kMinBlocks)
    attention_backward_dq(const __grid_constant__ Attention attention,
                          const __grid_constant__ AttentionGradients gradients) {
  using T = typename Config::T;
  using Shared = SharedMemory<Config, 2>;
  const AttentionSizes& size = attention.size;
  const int part = static_cast<int>(blockIdx.x % Config::kParts) * Config::kPartDim;
  const QueryTile<Config> tile(attention, blockIdx.x / Config::kParts);
  T *const s_q = Shared::resident(0), *const s_do = Shared::resident(1);
  const auto s_k = [](int stage) { return Shared::streamed(stage, 0); };
  const auto s_v = [](int stage) { return Shared::streamed(stage, 1); };
  const float scale = attention.scale * kSoftmaxLog2e<T>;

  // Starts to copy keys and values of a tile to a stage, and makes its dropout bits.
  const T *k = head_of<T>(attention.k, tile.sample, tile.key_head),
          *v = head_of<T>(attention.v, tile.sample, tile.key_head);
  const auto load_stage = [&](int key_tile) {
    const int stage = key_tile & 1;
    const std::int64_t key0 = tile.first_key(key_tile);
    load_tile<Config, Config::kStreamedRows>(s_k(stage), k, attention.k, key0, tile.key_end, size.head_dim);
    load_tile<Config, Config::kStreamedRows>(s_v(stage), v, attention.v, key0, tile.key_end, size.head_dim);
    if (tile.drops)
      make_dropout_bits<Config, Config::kResidentRows, Config::kStreamedRows>(
          Shared::resident_bits(stage), attention, tile.philox_sample, tile.head, tile.query0, key0);
  };

  const int warp_row = warp_index() * Config::kWarpRows; // the warp's first row of the tile
  float lse[Config::kMmaM][2], delta[Config::kMmaM][2];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) { // rows past the last have q = dout = 0, so they give zeros with any lse
    const std::int64_t query = tile.query0 + warp_row + 8 * i + lane_index() / 4;
    const std::int64_t statistic = (tile.sample * size.heads + tile.head) * size.queries + query;
    lse[i / 2][i % 2] = query < tile.query_end ? attention.lse[statistic] * kSoftmaxLog2e<T> : 0.0f;
    delta[i / 2][i % 2] = query < tile.query_end ? gradients.delta[statistic] : 0.0f;
  }
  Fragment<Config::kMmaM, Config::kPartDim> dq{};
  if (tile.key_tiles > 0) {
    load_tile<Config, Config::kResidentRows>(s_q, head_of<T>(attention.q, tile.sample, tile.head), attention.q,
                                             tile.query0, tile.query_end, size.head_dim);
    load_tile<Config, Config::kResidentRows>(s_do, head_of<T>(gradients.dout, tile.sample, tile.head), gradients.dout,
                                             tile.query0, tile.query_end, size.head_dim);
    load_stage(0);
  }
  for (int key_tile = 0; key_tile < tile.key_tiles; ++key_tile) {
    cp_async_wait_all();
    __syncthreads(); // this tile has arrived, and all threads have finished the previous one
    if (key_tile + 1 < tile.key_tiles) load_stage(key_tile + 1);
    const int stage = key_tile & 1;
    Fragment<Config::kMmaM, Config::kStreamedRows> scores{}, dp{};
    mma_abt<Config>(scores, s_q + Config::offset(warp_row, 0), s_k(stage));
    mma_abt<Config>(dp, s_do + Config::offset(warp_row, 0), s_v(stage));
    if (tile.drops) drop_scores<Config>(dp, Shared::resident_bits(stage), warp_row);
    for_each_element<Config::kMmaM, Config::kStreamedRows>([&](FragmentIndex i) {
      float& score = scores[i.mma_m][i.mma_n][i.reg];
      const float p = softmax_exp<T>(score * scale - lse[i.mma_m][i.reg / 2]);
      score = p * (dp[i.mma_m][i.mma_n][i.reg] * attention.drop.scale - delta[i.mma_m][i.reg / 2]);
    });
    auto& ds = scores;
    const TileMask mask = tile.mask(attention, key_tile);
    // p may be infinite where hidden, so the mask comes last.
    if (!mask.is_full(Config::kStreamedRows)) mask_scores<Config>(ds, mask, warp_row, 0);
    mma_ab<Config>(dq, ds, s_k(stage) + part);
  }
  float dq_scale[Config::kMmaM][2];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) dq_scale[i / 2][i % 2] = attention.scale;
  store_fragment<Config>(dq, dq_scale, head_of<T>(gradients.dq, tile.sample, tile.head), gradients.dq,
                         tile.query0 + warp_row, size.queries, part, size.head_dim);
}

} // namespace triax::kernels_fused
