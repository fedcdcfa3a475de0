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

/// The k-th statistic (Tile::statistic()) of the queries of the lane's two columns in a tile of eight.
template <class Tile>
__device__ __forceinline__ float2 statistics_of_lane(const float* statistics, int tile, int k) {
  return *reinterpret_cast<const float2*>(statistics + Tile::statistic(8 * tile + lane_index() % 4 * 2, k));
}

/// Replaces P (in scores) by dropout(P) without its scale, and dP = dout v^T by dS.
template <class Tile, bool kDrops>
__device__ __forceinline__ void score_gradients(Fragment<Tile::kStrips, Tile::kColumns>& scores,
                                                Fragment<Tile::kStrips, Tile::kColumns>& dp, const float* statistics,
                                                const std::uint16_t* bits, int row, float keep_scale) {
#pragma unroll
  for (int i = 0; i < Tile::kStrips * Tile::kColumns / 4; ++i) { // two rows of one column
    const FragmentIndex upper{i / (Tile::kColumns / 4), i / 2 % (Tile::kColumns / 8), i % 2};
    const int query = upper.column();
    const float2 delta = statistics_of_lane<Tile>(statistics, upper.tile, 1);
    const float delta_of_query = upper.reg == 0 ? delta.x : delta.y;
    int kept = 0;
    if constexpr (kDrops)
      kept = bits[query * Tile::kBitsStride + row / kKeptTogether + upper.strip] >> (lane_index() / 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& p = scores[upper.strip][upper.tile][upper.reg + 2 * half];
      float& ds = dp[upper.strip][upper.tile][upper.reg + 2 * half];
      if constexpr (kDrops) {
        const bool keeps = (kept >> (8 * half) & 1) != 0;
        ds = p * ((keeps ? ds * keep_scale : 0.0f) - delta_of_query);
        if (!keeps) p = 0;
      } else {
        ds = p * (ds - delta_of_query);
      }
    }
  }
}

/// dv = dropout(P)^T dout; dk = scale * dS^T q; or added to dv and dk.
template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kMinBlocks)
    attention_backward_dkdv(const __grid_constant__ Attention attention,
                            const __grid_constant__ AttentionGradients gradients) {
  using T = typename Tile::T;
  using Shared = SharedMemory<Tile, 2>;
  const AttentionSizes& size = attention.size;
  const int part = static_cast<int>(blockIdx.x % Tile::kParts) * Tile::kPartWidth;
  const TileCoordinates at =
      tile_of_block(blockIdx.x / Tile::kParts, tiles_of(size.keys, Tile::kRows), size.key_heads, false);
  const std::int64_t first = at.tile * Tile::kRows;
  const std::int64_t last = first + Tile::kRows < size.keys ? first + Tile::kRows : size.keys;
  const std::int64_t visible = visible_keys(attention.mask, at.sample, size.keys);
  const QueryPass pass = query_pass<Tile>(attention, first, visible);
  const bool drops = attention.drop.threshold != 0;
  const auto sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u;
  const float scale = attention.scale * kFromNatural<T>;

  // The step that was loaded last: its query head, and its tile within the pass. A head's tiles come in order, then
  // those of the next head. Both are counted, because a division of the step's number makes nvcc spill.
  std::int64_t loaded_head = at.head * size.group(), loaded_tile = -1;
  const auto load_next_step = [&](int stage) {
    if (++loaded_tile == pass.tiles) {
      loaded_tile = 0;
      ++loaded_head;
    }
    const std::int64_t head = loaded_head, begin = (pass.first_tile + loaded_tile) * Tile::kColumns;
    const std::int64_t row_of_head = (at.sample * size.heads + head) * size.queries;
    load_tile<Tile, Tile::kColumns>(Shared::streamed(stage, 0), head_of<T>(attention.q, at.sample, head), attention.q,
                                    begin, size.queries, size.width);
    load_tile<Tile, Tile::kColumns>(Shared::streamed(stage, 1), head_of<T>(gradients.dout, at.sample, head),
                                    gradients.dout, begin, size.queries, size.width);
    load_statistics<Tile>(Shared::statistics(stage), 0, attention.lse + row_of_head, begin, size.queries);
    load_statistics<Tile>(Shared::statistics(stage), 1, gradients.delta + row_of_head, begin, size.queries);
    if (drops)
      make_dropout_bits<Tile, Tile::kColumns, Tile::kRows>(Shared::streamed_bits(stage), attention, sample, head, begin,
                                                           first);
  };

  const int row = warp_index() * Tile::kWarpRows; // first row of the warp
  Fragment<Tile::kStrips, Tile::kPartWidth> dk{}, dv{};
  if (pass.steps > 0) {
    load_tile<Tile, Tile::kRows>(Shared::resident(0), head_of<T>(attention.k, at.sample, at.head), attention.k, first,
                                 last, size.width);
    load_tile<Tile, Tile::kRows>(Shared::resident(1), head_of<T>(attention.v, at.sample, at.head), attention.v, first,
                                 last, size.width);
    load_next_step(0);
  }
  for (int step = 0; step < pass.steps; ++step) {
    cp_async_wait_all();
    __syncthreads();
    const int stage = step & 1;
    const std::int64_t begin = (pass.first_tile + loaded_tile) * Tile::kColumns; // of this step
    if (step + 1 < pass.steps) load_next_step(stage ^ 1);
    const float* statistics = Shared::statistics(stage);
    Fragment<Tile::kStrips, Tile::kColumns> scores{}, dp{};
    add_abt<Tile>(scores, Shared::resident(0) + Tile::offset(row, 0), Shared::streamed(stage, 0));
    for_each_element<Tile::kStrips, Tile::kColumns>([&](FragmentIndex i) {
      float& score = scores[i.strip][i.tile][i.reg];
      const float2 lse = statistics_of_lane<Tile>(statistics, i.tile, 0);
      const float lse_of_query = (i.reg % 2 == 0 ? lse.x : lse.y) * kFromNatural<T>;
      score = exponential<T>(score * scale - lse_of_query);
    });
    const TileMask mask = tile_mask(attention.mask, begin, first, visible);
    if (!mask.hides_none(Tile::kRows)) mask_scores<Tile, true>(scores, mask, row, 0);
    add_abt<Tile>(dp, Shared::resident(1) + Tile::offset(row, 0), Shared::streamed(stage, 1));
    if (drops) {
      score_gradients<Tile, true>(scores, dp, statistics, Shared::streamed_bits(stage), row,
                                  attention.drop.scale);
    } else {
      score_gradients<Tile, false>(scores, dp, statistics, nullptr, row, 1);
    }
    add_ab<Tile>(dv, scores, Shared::streamed(stage, 1) + part);
    add_ab<Tile>(dk, dp, Shared::streamed(stage, 0) + part);
  }
  float dv_scale[Tile::kStrips][2], dk_scale[Tile::kStrips][2];
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) {
    dv_scale[i / 2][i % 2] = attention.drop.scale;
    dk_scale[i / 2][i % 2] = attention.scale;
  }
  store_fragment<Tile>(dv, dv_scale, head_of<T>(gradients.dv, at.sample, at.head), gradients.dv, first + row, size.keys,
                       part, size.width, gradients.add_kv);
  store_fragment<Tile>(dk, dk_scale, head_of<T>(gradients.dk, at.sample, at.head), gradients.dk, first + row, size.keys,
                       part, size.width, gradients.add_kv);
}

} // namespace triax::kernels_fused
