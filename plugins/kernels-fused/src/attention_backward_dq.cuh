// SPDX-License-Identifier: Apache-2.0
// Attention backward, gradient of queries: a block has a tile of queries of one head, and iterates over the keys they
// see, tile by tile. attention_backward.cuh is the overview.
#pragma once

#include "attention_steps.cuh"

namespace triax::kernels_fused {

/// dq = scale * dS k, where dS = P * (dropout(dP) - delta) and dP = dout v^T.
template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kMinBlocks)
    attention_backward_dq(const __grid_constant__ Attention attention,
                          const __grid_constant__ AttentionGradients gradients) {
  using T = typename Tile::T;
  using Shared = SharedMemory<Tile, 2>;
  const AttentionSizes& size = attention.size;
  const int part = static_cast<int>(blockIdx.x % Tile::kParts) * Tile::kPartWidth;
  const QueryTile<Tile> tile(attention, blockIdx.x / Tile::kParts);
  const float scale = attention.scale * kFromNatural<T>;

  const int row = warp_index() * Tile::kWarpRows; // first row of the warp
  float lse[Tile::kStrips][2], delta[Tile::kStrips][2];
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) { // rows past the last have q = dout = 0, so they give zeros with any lse
    const std::int64_t query = tile.first + row + 8 * i + lane_index() / 4;
    const std::int64_t statistic = (tile.at.sample * size.heads + tile.at.head) * size.queries + query;
    lse[i / 2][i % 2] = query < tile.last ? attention.lse[statistic] * kFromNatural<T> : 0.0f;
    delta[i / 2][i % 2] = query < tile.last ? gradients.delta[statistic] : 0.0f;
  }
  Fragment<Tile::kStrips, Tile::kPartWidth> dq{};
  if (tile.tiles > 0) {
    load_tile<Tile, Tile::kRows>(Shared::resident(0), head_of<T>(attention.q, tile.at.sample, tile.at.head),
                                 attention.q, tile.first, tile.last, size.width);
    load_tile<Tile, Tile::kRows>(Shared::resident(1), head_of<T>(gradients.dout, tile.at.sample, tile.at.head),
                                 gradients.dout, tile.first, tile.last, size.width);
    tile.template load_keys<Shared>(attention, 0);
  }
  for (int index = 0; index < tile.tiles; ++index) {
    cp_async_wait_all();
    __syncthreads();
    if (index + 1 < tile.tiles) tile.template load_keys<Shared>(attention, index + 1);
    const int stage = index & 1;
    Fragment<Tile::kStrips, Tile::kColumns> scores{}, dp{};
    add_abt<Tile>(scores, Shared::resident(0) + Tile::offset(row, 0), Shared::streamed(stage, 0));
    add_abt<Tile>(dp, Shared::resident(1) + Tile::offset(row, 0), Shared::streamed(stage, 1));
    if (tile.drops) drop_scores<Tile>(dp, Shared::resident_bits(stage), row);
    for_each_element<Tile::kStrips, Tile::kColumns>([&](FragmentIndex i) {
      float& score = scores[i.strip][i.tile][i.reg];
      const float p = exponential<T>(score * scale - lse[i.strip][i.reg / 2]);
      score = p * (dp[i.strip][i.tile][i.reg] * attention.drop.scale - delta[i.strip][i.reg / 2]);
    });
    const TileMask mask = tile.mask(attention, index);
    if (!mask.hides_none(Tile::kColumns)) mask_scores<Tile>(scores, mask, row, 0);
    add_ab<Tile>(dq, scores, Shared::streamed(stage, 0) + part);
  }
  float dq_scale[Tile::kStrips][2];
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) dq_scale[i / 2][i % 2] = attention.scale;
  store_fragment<Tile>(dq, dq_scale, head_of<T>(gradients.dq, tile.at.sample, tile.at.head), gradients.dq,
                       tile.first + row, size.queries, part, size.width);
}

} // namespace triax::kernels_fused
