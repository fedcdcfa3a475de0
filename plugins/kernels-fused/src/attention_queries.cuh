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
  const TilePlace at = tile_place(blockIdx.x / Tile::kParts, tiles_of(size.queries, Tile::kRows), size.heads, true);
  const std::int64_t first = at.tile * Tile::kRows, key_head = at.head / size.group();
  const std::int64_t last = first + Tile::kRows < size.queries ? first + Tile::kRows : size.queries;
  const std::int64_t visible = visible_keys(attention.mask, at.sample, size.keys);
  const std::int64_t seen = seen_by(attention.mask, last - 1, visible);
  const auto tiles = static_cast<int>(tiles_of(seen, Tile::kColumns));
  const bool drops = attention.drop.threshold != 0;
  const auto sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u;
  const float scale = attention.scale * kFromNatural<T>;

  const auto load_keys = [&](int index) {
    const int stage = index & 1;
    const std::int64_t begin = std::int64_t{index} * Tile::kColumns;
    load_tile<Tile, Tile::kColumns>(Shared::other(stage, 0), head_of<T>(attention.k, at.sample, key_head), attention.k,
                                    begin, seen, size.width);
    load_tile<Tile, Tile::kColumns>(Shared::other(stage, 1), head_of<T>(attention.v, at.sample, key_head), attention.v,
                                    begin, seen, size.width);
    if (drops)
      make_dropout_bits<Tile, Tile::kRows, Tile::kColumns>(Shared::bits(stage), attention, sample, at.head, first,
                                                           begin);
  };

  const int row = warp_index() * Tile::kWarpRows; // first row of the warp
  float lse[Tile::kStrips][2], delta[Tile::kStrips][2];
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) { // rows past the last have q = dout = 0, so they give zeros with any lse
    const std::int64_t query = first + row + 8 * i + lane_index() / 4;
    const std::int64_t place = (at.sample * size.heads + at.head) * size.queries + query;
    lse[i / 2][i % 2] = query < last ? attention.lse[place] * kFromNatural<T> : 0.0f;
    delta[i / 2][i % 2] = query < last ? gradients.delta[place] : 0.0f;
  }
  Fragment<Tile::kStrips, Tile::kPartWidth> dq;
  clear<Tile::kStrips, Tile::kPartWidth>(dq);
  if (tiles > 0) {
    load_tile<Tile, Tile::kRows>(Shared::own(0), head_of<T>(attention.q, at.sample, at.head), attention.q, first, last,
                                 size.width);
    load_tile<Tile, Tile::kRows>(Shared::own(1), head_of<T>(gradients.dout, at.sample, at.head), gradients.dout, first,
                                 last, size.width);
    load_keys(0);
  }
  for (int index = 0; index < tiles; ++index) {
    cp_async_wait_all();
    __syncthreads();
    if (index + 1 < tiles) load_keys(index + 1);
    const int stage = index & 1;
    Fragment<Tile::kStrips, Tile::kColumns> scores, slopes;
    clear<Tile::kStrips, Tile::kColumns>(scores);
    clear<Tile::kStrips, Tile::kColumns>(slopes);
    add_abt<Tile>(scores, Shared::own(0) + Tile::at(row, 0), Shared::other(stage, 0));
    add_abt<Tile>(slopes, Shared::own(1) + Tile::at(row, 0), Shared::other(stage, 1));
    if (drops) drop_scores<Tile>(slopes, Shared::bits(stage), row);
#pragma unroll
    for (int i = 0; i < Tile::kStrips * Tile::kColumns / 2; ++i) {
      const int strip = i / (Tile::kColumns / 2), n = i / 4 % (Tile::kColumns / 8), e = i % 4;
      const float p = exponential<T>(scores[strip][n][e] * scale - lse[strip][e / 2]);
      scores[strip][n][e] = p * (slopes[strip][n][e] * attention.drop.scale - delta[strip][e / 2]);
    }
    const TileMask mask = tile_mask(attention.mask, first, std::int64_t{index} * Tile::kColumns, visible);
    if (!mask.hides_none(Tile::kColumns)) mask_scores<Tile>(scores, mask, row, 0);
    add_ab<Tile>(dq, scores, Shared::other(stage, 0) + part);
  }
  float factor[Tile::kStrips][2];
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) factor[i / 2][i % 2] = attention.scale;
  store<Tile>(dq, factor, head_of<T>(gradients.dq, at.sample, at.head), gradients.dq, first + row, size.queries, part,
              size.width);
}

} // namespace triax::kernels_fused
