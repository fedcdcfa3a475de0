// SPDX-License-Identifier: Apache-2.0
// Attention backward, gradient of queries: a block has a tile of queries of one head, and iterates over the keys they
// see, tile by tile. attention_backward.cuh is the overview.
#pragma once

#include "attention_steps.cuh"

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
  const float scale = attention.scale * kLog2EOr1<T>;

  // Starts to copy keys and values of a tile to a stage, and makes its dropout bits.
  const T *k = head_of<T>(attention.k, tile.at.sample, tile.key_head),
          *v = head_of<T>(attention.v, tile.at.sample, tile.key_head);
  const auto load_stage = [&](int index) {
    const int stage = index & 1;
    load_tile<Config, Config::kStreamedRows>(Shared::streamed(stage, 0), k, attention.k, tile.first_key(index),
                                             tile.seen, size.head_dim);
    load_tile<Config, Config::kStreamedRows>(Shared::streamed(stage, 1), v, attention.v, tile.first_key(index),
                                             tile.seen, size.head_dim);
    if (tile.drops)
      make_dropout_bits<Config, Config::kResidentRows, Config::kStreamedRows>(
          Shared::resident_bits(stage), attention, tile.sample, tile.at.head, tile.first, tile.first_key(index));
  };

  const int row = warp_index() * Config::kWarpRows; // first row of the warp
  float lse[Config::kMmaM][2], delta[Config::kMmaM][2];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) { // rows past the last have q = dout = 0, so they give zeros with any lse
    const std::int64_t query = tile.first + row + 8 * i + lane_index() / 4;
    const std::int64_t statistic = (tile.at.sample * size.heads + tile.at.head) * size.queries + query;
    lse[i / 2][i % 2] = query < tile.end ? attention.lse[statistic] * kLog2EOr1<T> : 0.0f;
    delta[i / 2][i % 2] = query < tile.end ? gradients.delta[statistic] : 0.0f;
  }
  Fragment<Config::kMmaM, Config::kPartDim> dq{};
  if (tile.tiles > 0) {
    load_tile<Config, Config::kResidentRows>(Shared::resident(0), head_of<T>(attention.q, tile.at.sample, tile.at.head),
                                             attention.q, tile.first, tile.end, size.head_dim);
    load_tile<Config, Config::kResidentRows>(Shared::resident(1),
                                             head_of<T>(gradients.dout, tile.at.sample, tile.at.head), gradients.dout,
                                             tile.first, tile.end, size.head_dim);
    load_stage(0);
  }
  for (int index = 0; index < tile.tiles; ++index) {
    cp_async_wait_all();
    __syncthreads(); // this tile has arrived, and all threads have finished the previous one
    if (index + 1 < tile.tiles) load_stage(index + 1);
    const int stage = index & 1;
    Fragment<Config::kMmaM, Config::kStreamedRows> scores{}, dp{};
    mma_abt<Config>(scores, Shared::resident(0) + Config::offset(row, 0), Shared::streamed(stage, 0));
    mma_abt<Config>(dp, Shared::resident(1) + Config::offset(row, 0), Shared::streamed(stage, 1));
    if (tile.drops) drop_scores<Config>(dp, Shared::resident_bits(stage), row);
    for_each_element<Config::kMmaM, Config::kStreamedRows>([&](FragmentIndex i) {
      float& score = scores[i.mma_m][i.mma_n][i.reg];
      const float p = exp_or_exp2<T>(score * scale - lse[i.mma_m][i.reg / 2]);
      score = p * (dp[i.mma_m][i.mma_n][i.reg] * attention.drop.scale - delta[i.mma_m][i.reg / 2]);
    });
    const TileMask mask = tile.mask(attention, index);
    // p may be infinite where hidden, so the mask comes last.
    if (!mask.is_full(Config::kStreamedRows)) mask_scores<Config>(scores, mask, row, 0);
    mma_ab<Config>(dq, scores, Shared::streamed(stage, 0) + part);
  }
  float dq_scale[Config::kMmaM][2];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) dq_scale[i / 2][i % 2] = attention.scale;
  store_fragment<Config>(dq, dq_scale, head_of<T>(gradients.dq, tile.at.sample, tile.at.head), gradients.dq,
                         tile.first + row, size.queries, part, size.head_dim);
}

} // namespace triax::kernels_fused
