// SPDX-License-Identifier: Apache-2.0
// Attention backward, gradient of queries: a block has a tile of queries of one head, and iterates over the keys they
// see, tile by tile. attention_backward.cuh is the overview.
#pragma once

#include "attention_steps.cuh"

namespace triax::kernels_fused {

/// dq = scale * dS k, where dS = P * (dropout(dout v^T) - delta).
template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    attention_queries(const __grid_constant__ Attention attention,
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
    const std::int64_t place = (tile.at.sample * size.heads + tile.at.head) * size.queries + query;
    lse[i / 2][i % 2] = query < tile.last ? attention.lse[place] * kFromNatural<T> : 0.0f;
    delta[i / 2][i % 2] = query < tile.last ? gradients.delta[place] : 0.0f;
  }
  Fragment<Tile::kStrips, Tile::kPartWidth> dq;
  clear<Tile::kStrips, Tile::kPartWidth>(dq);
  if (tile.tiles > 0) {
    load_tile<Tile, Tile::kRows>(Shared::own(0), head_of<T>(attention.q, tile.at.sample, tile.at.head), attention.q,
                                 tile.first, tile.last, size.width);
    load_tile<Tile, Tile::kRows>(Shared::own(1), head_of<T>(gradients.dout, tile.at.sample, tile.at.head),
                                 gradients.dout, tile.first, tile.last, size.width);
    tile.template load_keys<Shared>(attention, 0);
  }
  for (int index = 0; index < tile.tiles; ++index) {
    cp_async_wait_all();
    __syncthreads();
    if (index + 1 < tile.tiles) tile.template load_keys<Shared>(attention, index + 1);
    const int stage = index & 1;
    Fragment<Tile::kStrips, Tile::kColumns> scores, slopes;
    clear<Tile::kStrips, Tile::kColumns>(scores);
    clear<Tile::kStrips, Tile::kColumns>(slopes);
    add_abt<Tile>(scores, Shared::own(0) + Tile::at(row, 0), Shared::other(stage, 0));
    add_abt<Tile>(slopes, Shared::own(1) + Tile::at(row, 0), Shared::other(stage, 1));
    if (tile.drops) drop_scores<Tile>(slopes, Shared::bits(stage), row);
#pragma unroll
    for (int i = 0; i < Tile::kStrips * Tile::kColumns / 2; ++i) {
      const int strip = i / (Tile::kColumns / 2), n = i / 4 % (Tile::kColumns / 8), e = i % 4;
      const float p = exponential<T>(scores[strip][n][e] * scale - lse[strip][e / 2]);
      scores[strip][n][e] = p * (slopes[strip][n][e] * attention.drop.scale - delta[strip][e / 2]);
    }
    const TileMask mask = tile.mask(attention, index);
    if (!mask.hides_none(Tile::kColumns)) mask_scores<Tile>(scores, mask, row, 0);
    add_ab<Tile>(dq, scores, Shared::other(stage, 0) + part);
  }
  float factor[Tile::kStrips][2];
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) factor[i / 2][i % 2] = attention.scale;
  store<Tile>(dq, factor, head_of<T>(gradients.dq, tile.at.sample, tile.at.head), gradients.dq, tile.first + row,
              size.queries, part, size.width);
}

} // namespace triax::kernels_fused
