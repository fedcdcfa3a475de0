// SPDX-License-Identifier: Apache-2.0
// Attention backward, gradients of keys and values: a block has a tile of keys of one key head, and iterates over the
// queries that see them, tile by tile, for all query heads of the key head in order. attention_backward.cuh is the
// overview.
//
// Rows are keys here, and columns are queries: products are transposed, so that P and dS stay in registers.
#pragma once

#include "attention_steps.cuh"

namespace triax::kernels_fused {

/// The queries that a tile of keys iterates over.
struct QueryPass {
  int first_tile, tiles, steps; // tiles of one head; steps over all heads
};
template <class Tile>
__device__ __forceinline__ QueryPass query_pass(const Attention& attention, std::int64_t first_key,
                                                std::int64_t visible) {
  const AttentionSizes& size = attention.size;
  const std::int64_t from = first_seeing(attention.mask, first_key) / Tile::kColumns;
  std::int64_t tiles = tiles_of(size.queries, Tile::kColumns) - from;
  if (tiles < 0 || first_key >= visible) tiles = 0;
  return {static_cast<int>(from), static_cast<int>(tiles), static_cast<int>(tiles * size.group())};
}

/// Sets hidden scores to 0; scores of keys (rows, starting at `row`) and queries.
template <class Tile>
__device__ __forceinline__ void mask_keys(Fragment<Tile::kStrips, Tile::kColumns>& scores, const TileMask& mask,
                                          int row) {
#pragma unroll
  for (int i = 0; i < Tile::kStrips * Tile::kColumns / 2; ++i) {
    const int strip = i / (Tile::kColumns / 2), n = i / 4 % (Tile::kColumns / 8), e = i % 4;
    const int key = row + 16 * strip + lane_index() / 4 + 8 * (e / 2);
    if (!mask.sees(8 * n + lane_index() % 4 * 2 + e % 2, key)) scores[strip][n][e] = 0;
  }
}

/// Replaces P (in scores) by dropout(P) without its scale, and slopes, which are dout v^T, by dS.
template <class Tile, bool kDrops>
__device__ __forceinline__ void score_gradients(Fragment<Tile::kStrips, Tile::kColumns>& scores,
                                                Fragment<Tile::kStrips, Tile::kColumns>& slopes, const float* delta,
                                                const std::uint16_t* bits, int row, float keep_scale) {
#pragma unroll
  for (int i = 0; i < Tile::kStrips * Tile::kColumns / 4; ++i) { // two rows of one column
    const int strip = i / (Tile::kColumns / 4), n = i / 2 % (Tile::kColumns / 8), odd = i % 2;
    const int query = 8 * n + lane_index() % 4 * 2 + odd;
    const float less = delta[query];
    int kept = 0;
    if constexpr (kDrops)
      kept = bits[query * (Tile::kRows / kKeptTogether) + row / kKeptTogether + strip] >> (lane_index() / 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float &p = scores[strip][n][2 * half + odd], &slope = slopes[strip][n][2 * half + odd];
      if constexpr (kDrops) {
        const bool keeps = (kept >> (8 * half) & 1) != 0;
        slope = p * ((keeps ? slope * keep_scale : 0.0f) - less);
        if (!keeps) p = 0;
      } else {
        slope = p * (slope - less);
      }
    }
  }
}

/// dv = dropout(P)^T dout; dk = scale * dS^T q.
template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    attention_keys(const __grid_constant__ Attention attention, const __grid_constant__ AttentionGradients gradients) {
  using T = typename Tile::T;
  using Shared = SharedMemory<Tile, 2>;
  const AttentionSizes& size = attention.size;
  const int part = static_cast<int>(blockIdx.x % Tile::kParts) * Tile::kPartWidth;
  const TilePlace at = tile_place(blockIdx.x / Tile::kParts, tiles_of(size.keys, Tile::kRows), size.key_heads, false);
  const std::int64_t first = at.tile * Tile::kRows;
  const std::int64_t last = first + Tile::kRows < size.keys ? first + Tile::kRows : size.keys;
  const std::int64_t visible = visible_keys(attention.mask, at.sample, size.keys);
  const QueryPass pass = query_pass<Tile>(attention, first, visible);
  const bool drops = attention.drop.threshold != 0;
  const auto sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u;
  const float scale = attention.scale * kFromNatural<T>;

  std::int64_t head = at.head * size.group(), fetched = -1; // the query head, and its last fetched tile
  const auto load_queries = [&](int stage) {
    if (++fetched == pass.tiles) {
      fetched = 0;
      ++head;
    }
    const std::int64_t begin = (pass.first_tile + fetched) * Tile::kColumns;
    const std::int64_t row_of_head = (at.sample * size.heads + head) * size.queries;
    load_tile<Tile, Tile::kColumns>(Shared::other(stage, 0), head_of<T>(attention.q, at.sample, head), attention.q,
                                    begin, size.queries, size.width);
    load_tile<Tile, Tile::kColumns>(Shared::other(stage, 1), head_of<T>(gradients.dout, at.sample, head),
                                    gradients.dout, begin, size.queries, size.width);
    load_statistics<Tile>(Shared::statistics(stage, 0), attention.lse + row_of_head, begin, size.queries);
    load_statistics<Tile>(Shared::statistics(stage, 1), gradients.delta + row_of_head, begin, size.queries);
    if (drops)
      make_dropout_bits<Tile, Tile::kColumns, Tile::kRows>(Shared::bits(stage), attention, sample, head, begin, first);
  };

  const int row = warp_index() * Tile::kWarpRows; // first row of the warp
  Fragment<Tile::kStrips, Tile::kPartWidth> dk, dv;
  clear<Tile::kStrips, Tile::kPartWidth>(dk);
  clear<Tile::kStrips, Tile::kPartWidth>(dv);
  if (pass.steps > 0) {
    load_tile<Tile, Tile::kRows>(Shared::own(0), head_of<T>(attention.k, at.sample, at.head), attention.k, first, last,
                                 size.width);
    load_tile<Tile, Tile::kRows>(Shared::own(1), head_of<T>(attention.v, at.sample, at.head), attention.v, first, last,
                                 size.width);
    load_queries(0);
  }
  for (int step = 0; step < pass.steps; ++step) {
    cp_async_wait_all();
    __syncthreads();
    const int stage = step & 1;
    const std::int64_t begin = (pass.first_tile + fetched) * Tile::kColumns;
    if (step + 1 < pass.steps) load_queries(stage ^ 1);
    const float* lse = Shared::statistics(stage, 0);
    Fragment<Tile::kStrips, Tile::kColumns> scores, slopes;
    clear<Tile::kStrips, Tile::kColumns>(scores);
    clear<Tile::kStrips, Tile::kColumns>(slopes);
    add_abt<Tile>(scores, Shared::own(0) + Tile::at(row, 0), Shared::other(stage, 0));
#pragma unroll
    for (int i = 0; i < Tile::kStrips * Tile::kColumns / 2; ++i) {
      const int strip = i / (Tile::kColumns / 2), n = i / 4 % (Tile::kColumns / 8), e = i % 4;
      const float less = lse[8 * n + lane_index() % 4 * 2 + e % 2] * kFromNatural<T>;
      scores[strip][n][e] = exponential<T>(scores[strip][n][e] * scale - less);
    }
    const TileMask mask = tile_mask(attention.mask, begin, first, visible);
    if (!mask.hides_none(Tile::kRows)) mask_keys<Tile>(scores, mask, row);
    add_abt<Tile>(slopes, Shared::own(1) + Tile::at(row, 0), Shared::other(stage, 1));
    if (drops) {
      score_gradients<Tile, true>(scores, slopes, Shared::statistics(stage, 1), Shared::bits(stage), row,
                                  attention.drop.scale);
    } else {
      score_gradients<Tile, false>(scores, slopes, Shared::statistics(stage, 1), nullptr, row, 1);
    }
    add_ab<Tile>(dv, scores, Shared::other(stage, 1) + part);
    add_ab<Tile>(dk, slopes, Shared::other(stage, 0) + part);
  }
  float by_keeping[Tile::kStrips][2], by_scale[Tile::kStrips][2];
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) {
    by_keeping[i / 2][i % 2] = attention.drop.scale;
    by_scale[i / 2][i % 2] = attention.scale;
  }
  store<Tile>(dv, by_keeping, head_of<T>(gradients.dv, at.sample, at.head), gradients.dv, first + row, size.keys, part,
              size.width);
  store<Tile>(dk, by_scale, head_of<T>(gradients.dk, at.sample, at.head), gradients.dk, first + row, size.keys, part,
              size.width);
}

} // namespace triax::kernels_fused
