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
template <class Config>
__device__ __forceinline__ QueryPass query_pass(const Attention& attention, std::int64_t first_key,
                                                std::int64_t visible) {
  const AttentionSizes& size = attention.size;
  const std::int64_t from = first_seeing(attention.mask, first_key) / Config::kStreamedRows;
  std::int64_t tiles = tiles_of(size.queries, Config::kStreamedRows) - from;
  if (tiles < 0 || first_key >= visible) tiles = 0;
  return {static_cast<int>(from), static_cast<int>(tiles), static_cast<int>(tiles * size.group())};
}

/// The k-th statistic (Config::statistic()) of the queries of the lane's two columns in a tile of eight.
template <class Config>
__device__ __forceinline__ float2 statistics_of_lane(const float* statistics, int mma_n, int k) {
  return *reinterpret_cast<const float2*>(statistics + Config::statistic(8 * mma_n + lane_index() % 4 * 2, k));
}

/// Replaces P (in scores) by dropout(P) without its scale, and dP = dout v^T (in dp_to_ds) by dS.
template <class Config, bool kDrops>
__device__ __forceinline__ void score_gradients(Fragment<Config::kMmaM, Config::kStreamedRows>& scores,
                                                Fragment<Config::kMmaM, Config::kStreamedRows>& dp_to_ds,
                                                const float* statistics, const std::uint16_t* bits, int row,
                                                float keep_scale) {
#pragma unroll
  for (int i = 0; i < Config::kMmaM * Config::kStreamedRows / 4; ++i) { // two rows of one column
    const FragmentIndex upper{i / (Config::kStreamedRows / 4), i / 2 % (Config::kStreamedRows / 8), i % 2};
    const int query = upper.column();
    const float2 delta = statistics_of_lane<Config>(statistics, upper.mma_n, 1);
    const float delta_of_query = upper.reg == 0 ? delta.x : delta.y;
    // Rows are keys: the number (row + 16 mma_m) / 16 of the query, and of that, bit lane / 4 + 8 half.
    int kept = 0;
    if constexpr (kDrops)
      kept = bits[query * Config::kBitsStride + row / kKeptTogether + upper.mma_m] >> (lane_index() / 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& p = scores[upper.mma_m][upper.mma_n][upper.reg + 2 * half];
      float& ds = dp_to_ds[upper.mma_m][upper.mma_n][upper.reg + 2 * half];
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

/// One block per tile of keys of a key head (and per part of the columns of dk and dv), 16 * kMmaM keys per warp.
///
/// dv = dropout(P)^T dout; dk = scale * dS^T q; or added to dv and dk.
template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kMinBlocks)
    attention_backward_dkdv(const __grid_constant__ Attention attention,
                            const __grid_constant__ AttentionGradients gradients) {
  using T = typename Config::T;
  using Shared = SharedMemory<Config, 2>;
  const AttentionSizes& size = attention.size;
  const int part = static_cast<int>(blockIdx.x % Config::kParts) * Config::kPartDim;
  const TileCoordinates at =
      tile_of_block(blockIdx.x / Config::kParts, tiles_of(size.keys, Config::kResidentRows), size.key_heads, false);
  const std::int64_t first = at.tile * Config::kResidentRows;
  const std::int64_t end = first + Config::kResidentRows < size.keys ? first + Config::kResidentRows : size.keys;
  const std::int64_t visible = visible_keys(attention.mask, at.sample, size.keys);
  const QueryPass pass = query_pass<Config>(attention, first, visible);
  const bool drops = attention.drop.threshold != 0;
  const auto sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u;
  const float scale = attention.scale * kLog2EOr1<T>;

  // The step that was loaded last: its query head, and its tile within the pass. A head's tiles come in order, then
  // those of the next head. Both are counted, because a division of the step's number makes nvcc spill.
  std::int64_t loaded_head = at.head * size.group(), loaded_tile = -1;
  const auto load_next_stage = [&](int stage) {
    if (++loaded_tile == pass.tiles) {
      loaded_tile = 0;
      ++loaded_head;
    }
    const std::int64_t head = loaded_head, begin = (pass.first_tile + loaded_tile) * Config::kStreamedRows;
    const std::int64_t row_of_head = (at.sample * size.heads + head) * size.queries;
    load_tile<Config, Config::kStreamedRows>(Shared::streamed(stage, 0), head_of<T>(attention.q, at.sample, head),
                                             attention.q, begin, size.queries, size.head_dim);
    load_tile<Config, Config::kStreamedRows>(Shared::streamed(stage, 1), head_of<T>(gradients.dout, at.sample, head),
                                             gradients.dout, begin, size.queries, size.head_dim);
    load_statistics<Config>(Shared::statistics(stage), 0, attention.lse + row_of_head, begin, size.queries);
    load_statistics<Config>(Shared::statistics(stage), 1, gradients.delta + row_of_head, begin, size.queries);
    if (drops)
      make_dropout_bits<Config, Config::kStreamedRows, Config::kResidentRows>(Shared::streamed_bits(stage), attention,
                                                                              sample, head, begin, first);
  };

  const int row = warp_index() * Config::kWarpRows; // first row of the warp
  Fragment<Config::kMmaM, Config::kPartDim> dk{}, dv{};
  if (pass.steps > 0) {
    load_tile<Config, Config::kResidentRows>(Shared::resident(0), head_of<T>(attention.k, at.sample, at.head),
                                             attention.k, first, end, size.head_dim);
    load_tile<Config, Config::kResidentRows>(Shared::resident(1), head_of<T>(attention.v, at.sample, at.head),
                                             attention.v, first, end, size.head_dim);
    load_next_stage(0);
  }
  for (int step = 0; step < pass.steps; ++step) {
    cp_async_wait_all();
    __syncthreads(); // this tile has arrived, and all threads have finished the previous one
    const int stage = step & 1;
    // loaded_tile is of this step until load_next_stage() below.
    const std::int64_t begin = (pass.first_tile + loaded_tile) * Config::kStreamedRows;
    if (step + 1 < pass.steps) load_next_stage(stage ^ 1);
    const float* statistics = Shared::statistics(stage);
    Fragment<Config::kMmaM, Config::kStreamedRows> scores{}, dp_to_ds{};
    mma_abt<Config>(scores, Shared::resident(0) + Config::offset(row, 0), Shared::streamed(stage, 0));
    // Columns past the last query have lse = delta = 0 and q = dout = 0: P is 1 there, but its products are 0. A query
    // that sees no key has lse = -infinity, so P is infinite: the mask sets it to 0 before it is multiplied. In dq the
    // mask follows the product, because P itself is not used there.
    for_each_element<Config::kMmaM, Config::kStreamedRows>([&](FragmentIndex i) {
      float& score = scores[i.mma_m][i.mma_n][i.reg];
      const float2 lse = statistics_of_lane<Config>(statistics, i.mma_n, 0);
      const float lse_of_query = (i.reg % 2 == 0 ? lse.x : lse.y) * kLog2EOr1<T>;
      score = exp_or_exp2<T>(score * scale - lse_of_query);
    });
    const TileMask mask = tile_mask(attention.mask, begin, first, visible);
    if (!mask.is_full(Config::kResidentRows)) mask_scores<Config, true>(scores, mask, row, 0);
    mma_abt<Config>(dp_to_ds, Shared::resident(1) + Config::offset(row, 0), Shared::streamed(stage, 1));
    if (drops) {
      score_gradients<Config, true>(scores, dp_to_ds, statistics, Shared::streamed_bits(stage), row,
                                    attention.drop.scale);
    } else {
      score_gradients<Config, false>(scores, dp_to_ds, statistics, nullptr, row, 1);
    }
    mma_ab<Config>(dv, scores, Shared::streamed(stage, 1) + part);
    mma_ab<Config>(dk, dp_to_ds, Shared::streamed(stage, 0) + part);
  }
  float dv_scale[Config::kMmaM][2], dk_scale[Config::kMmaM][2];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) {
    dv_scale[i / 2][i % 2] = attention.drop.scale;
    dk_scale[i / 2][i % 2] = attention.scale;
  }
  store_fragment<Config>(dv, dv_scale, head_of<T>(gradients.dv, at.sample, at.head), gradients.dv, first + row,
                         size.keys, part, size.head_dim, gradients.add_kv);
  store_fragment<Config>(dk, dk_scale, head_of<T>(gradients.dk, at.sample, at.head), gradients.dk, first + row,
                         size.keys, part, size.head_dim, gradients.add_kv);
}

} // namespace triax::kernels_fused
