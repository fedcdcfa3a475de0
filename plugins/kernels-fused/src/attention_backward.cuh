// SPDX-License-Identifier: Apache-2.0
// Attention backward, in three kernels: delta = rowsum(dout * o); the gradient of queries, with a block per tile of
// queries; the gradients of keys and values, with a block per tile of keys. The last two recompute the probabilities
// from q, k and lse (Dao, "FlashAttention-2", 2023, algorithm 2).
//
// Host threads, blocking, errors: attention_kernels.hpp.
//
// A single kernel for all gradients would need five products instead of seven. But concurrent blocks would add to the
// same dq: in no fixed order, or in separate buffers that grow with s x s.
#pragma once

#include "attention_steps.cuh"
#include "exp.cuh"

namespace triax::kernels_fused {

/// Lanes that share a query of a head: one per 16 bytes of its row, at most a warp.
template <class T>
TRIAX_HD constexpr int delta_lanes(int head_dim) {
  int lanes = 1;
  while (lanes < static_cast<int>(kWarpSize) && lanes * kVec<T> < head_dim) lanes *= 2;
  return lanes;
}
template <class T>
TRIAX_HD constexpr int delta_rows(int head_dim) { // rows per warp at a time
  return static_cast<int>(kWarpSize) / delta_lanes<T>(head_dim);
}

/// One group of 1 to 32 lanes per query of a head; a warp has delta_rows() groups. Lanes take the same elements whether
/// or not these are read in vectors.
template <class T>
__global__ void __launch_bounds__(kBlockSize)
    attention_backward_delta(const __grid_constant__ AttentionParams attention,
                             const __grid_constant__ AttentionGradients gradients) {
  constexpr std::int64_t kWarps = kBlockSize / kWarpSize;
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  const int lanes = delta_lanes<T>(size.head_dim), rows_per_warp = delta_rows<T>(size.head_dim);
  const int row_in_warp = lane_index() / lanes, lane_in_row = lane_index() % lanes;
  const bool vectorized = attention.o.vec16 && gradients.dout.vec16;
  for (std::int64_t first = (blockIdx.x * kWarps + warp_index()) * rows_per_warp; first < rows;
       first += gridDim.x * kWarps * rows_per_warp) {
    const std::int64_t i = first + row_in_warp;
    // Heads are contiguous in memory, so adjacent lanes take adjacent heads.
    const std::int64_t position = i / size.heads, head = i - position * size.heads;
    const std::int64_t query = position / size.samples, sample = position - query * size.samples;
    float sum = 0;
    if (i < rows) {
      const T* o = head_of<T>(attention.o, sample, head).row(query);
      const T* dout = head_of<T>(gradients.dout, sample, head).row(query);
      for (int column = lane_in_row * kVec<T>; column < size.head_dim; column += lanes * kVec<T>) {
        const int valid = valid_elements<T>(size.head_dim, column);
        const Floats<T> x = load(o + column, valid, vectorized), y = load(dout + column, valid, vectorized);
#pragma unroll
        for (int k = 0; k < kVec<T>; ++k) sum += x[k] * y[k];
      }
    }
#pragma unroll
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
      if (distance < lanes) sum += shuffle_xor(sum, static_cast<unsigned>(distance));
    }
    if (i < rows && lane_in_row == 0) gradients.delta[(sample * size.heads + head) * size.queries + query] = sum;
  }
}

/// One block per tile of queries of a head (and per kBlockColumns columns of dq), 16 * kMmaM queries per warp.
///
/// dq = scale * dS k, where dS = P * (dropout(dP) - delta) and dP = dout v^T. All blocks of a tile compute dS.
template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kMinBlocks)
    attention_backward_dq(const __grid_constant__ AttentionParams attention,
                          const __grid_constant__ AttentionGradients gradients) {
  using T = typename Config::T;
  using Shared = SharedMemory<Config, 2>;
  const AttentionSizes& size = attention.size;
  const int first_column = static_cast<int>(blockIdx.x % Config::kColumnBlocks) * Config::kBlockColumns;
  const QueryTile<Config> tile(attention, blockIdx.x / Config::kColumnBlocks);
  T *const s_q = Shared::resident(0), *const s_do = Shared::resident(1);
  const auto s_k = [](int stage) { return Shared::streamed(stage, 0); };
  const auto s_v = [](int stage) { return Shared::streamed(stage, 1); };
  const float scale_in_base = attention.scale * kLogOfE<T>;

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
  float lse_in_base[2 * Config::kMmaM], delta[2 * Config::kMmaM];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) { // rows past the last have q = dout = 0, so they give zeros with any lse
    const std::int64_t query = tile.query0 + warp_row + 8 * i + lane_index() / 4;
    const std::int64_t query_of_all = (tile.sample * size.heads + tile.head) * size.queries + query;
    lse_in_base[i] = query < tile.query_end ? attention.lse[query_of_all] * kLogOfE<T> : 0.0f;
    delta[i] = query < tile.query_end ? gradients.delta[query_of_all] : 0.0f;
  }
  Fragment<Config::kMmaM, Config::kBlockColumns> dq{};
  if (tile.key_tiles > 0) {
    load_tile<Config, Config::kResidentRows>(s_q, head_of<T>(attention.q, tile.sample, tile.head), tile.query0,
                                             tile.query_end, size.head_dim);
    load_tile<Config, Config::kResidentRows>(s_do, head_of<T>(gradients.dout, tile.sample, tile.head), tile.query0,
                                             tile.query_end, size.head_dim);
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
      const float p = exp_in_base<T>(score * scale_in_base - lse_in_base[2 * i.mma_m + i.reg / 2]);
      score = p * (dp[i.mma_m][i.mma_n][i.reg] * attention.drop.scale - delta[2 * i.mma_m + i.reg / 2]);
    });
    auto& ds = scores;
    const TileMask mask = tile.mask(attention, key_tile);
    // A query that sees no key has lse = -infinity, so p is infinite where hidden: the mask follows the product.
    if (!mask.is_full(Config::kStreamedRows)) mask_scores<Config>(ds, mask, warp_row, 0);
    mma_ab<Config>(dq, ds, s_k(stage) + first_column);
  }
  float dq_scale[2 * Config::kMmaM];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) dq_scale[i] = attention.scale;
  store_fragment<Config>(dq, dq_scale, head_of<T>(gradients.dq, tile.sample, tile.head), tile.query0 + warp_row,
                         size.queries, first_column, size.head_dim);
}

// In the kernel for keys, rows are keys and columns are queries: products are transposed, so that P and dS stay in
// registers. A block iterates over the queries that see its keys, tile by tile, for all query heads of the key head in
// order.

/// The queries that a tile of keys iterates over.
struct QueryPass {
  std::int64_t first_query; // of the first tile of each head
  int steps;                // tiles of all heads
};
template <class Config>
__device__ __forceinline__ QueryPass query_pass(const AttentionParams& attention, std::int64_t first_key,
                                                std::int64_t sample_keys) {
  const AttentionSizes& size = attention.size;
  const std::int64_t first_tile = first_seeing(attention.mask, first_key) / Config::kStreamedRows;
  std::int64_t tiles = ceil_div(size.queries, Config::kStreamedRows) - first_tile;
  if (tiles < 0 || first_key >= sample_keys) tiles = 0;
  return {first_tile * Config::kStreamedRows, static_cast<int>(tiles * size.group())};
}

/// A tile of queries of a pass. Both numbers are counted, because a division of the step's number makes nvcc spill.
struct QueryCursor {
  std::int64_t head, query0;
  /// The next tile of the head, or the first of the next head.
  __device__ __forceinline__ void advance(int rows, const QueryPass& pass, std::int64_t queries) {
    query0 += rows;
    if (query0 < queries) return;
    query0 = pass.first_query;
    ++head;
  }
};

/// The k-th statistic (Config::statistic()) of the queries of the lane's two columns in a tile of eight.
template <class Config>
__device__ __forceinline__ float2 statistics_of_lane(const float* statistics, int mma_n, int k) {
  return *reinterpret_cast<const float2*>(statistics + Config::statistic(8 * mma_n + lane_index() % 4 * 2, k));
}

/// Replaces P by dropout(P) without its scale, and dP = dout v^T by dS.
template <class Config, bool kDrops>
__device__ __forceinline__ void score_gradients(Fragment<Config::kMmaM, Config::kStreamedRows>& p_tile,
                                                Fragment<Config::kMmaM, Config::kStreamedRows>& dp_tile,
                                                const float* statistics, const std::uint16_t* bits, int warp_row,
                                                float keep_scale) {
#pragma unroll
  for (int i = 0; i < Config::kMmaM * Config::kStreamedRows / 4; ++i) { // two rows of one column
    const FragmentIndex upper{i / (Config::kStreamedRows / 4), i / 2 % (Config::kStreamedRows / 8), i % 2};
    const int query = upper.column();
    const float2 delta = statistics_of_lane<Config>(statistics, upper.mma_n, 1);
    const float delta_of_query = upper.reg == 0 ? delta.x : delta.y;
    // Rows are keys: the number (warp_row + 16 mma_m) / 16 of the query, and of that, bit lane / 4 + 8 half.
    int kept = 0;
    if constexpr (kDrops)
      kept = bits[query * Config::kBitsStride + warp_row / kKeptTogether + upper.mma_m] >> (lane_index() / 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& p = p_tile[upper.mma_m][upper.mma_n][upper.reg + 2 * half];
      float& ds = dp_tile[upper.mma_m][upper.mma_n][upper.reg + 2 * half];
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

/// One block per tile of keys of a key head (and per kBlockColumns columns of dk and dv), 16 * kMmaM keys per warp.
///
/// dv = dropout(P)^T dout; dk = scale * dS^T q; or added to dv and dk.
template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kMinBlocks)
    attention_backward_dkdv(const __grid_constant__ AttentionParams attention,
                            const __grid_constant__ AttentionGradients gradients) {
  using T = typename Config::T;
  using Shared = SharedMemory<Config, 2>;
  const AttentionSizes& size = attention.size;
  const int first_column = static_cast<int>(blockIdx.x % Config::kColumnBlocks) * Config::kBlockColumns;
  const TileCoordinates at = tile_of_block(blockIdx.x / Config::kColumnBlocks,
                                           ceil_div(size.keys, Config::kResidentRows), size.key_heads, false);
  const std::int64_t sample = at.sample, key_head = at.head, key0 = at.tile * Config::kResidentRows;
  const std::int64_t key_end = key0 + Config::kResidentRows < size.keys ? key0 + Config::kResidentRows : size.keys;
  const std::int64_t sample_keys = visible_keys(attention.mask, sample, size.keys);
  const QueryPass pass = query_pass<Config>(attention, key0, sample_keys);
  const bool drops = attention.drop.threshold != 0;
  const auto philox_sample = drops ? static_cast<std::uint32_t>(attention.drop.samples[sample]) : 0u;
  const float scale_in_base = attention.scale * kLogOfE<T>;
  T *const s_k = Shared::resident(0), *const s_v = Shared::resident(1);
  const auto s_q = [](int stage) { return Shared::streamed(stage, 0); };
  const auto s_do = [](int stage) { return Shared::streamed(stage, 1); };

  // Starts to copy the tile at `loaded` to a stage, and makes its dropout bits.
  QueryCursor loaded{key_head * size.group(), pass.first_query};
  const auto load_stage = [&](int stage) {
    const auto [head, query0] = loaded;
    const std::int64_t row_of_head = (sample * size.heads + head) * size.queries;
    load_tile<Config, Config::kStreamedRows>(s_q(stage), head_of<T>(attention.q, sample, head), query0, size.queries,
                                             size.head_dim);
    load_tile<Config, Config::kStreamedRows>(s_do(stage), head_of<T>(gradients.dout, sample, head), query0,
                                             size.queries, size.head_dim);
    load_statistics<Config>(Shared::statistics(stage), 0, attention.lse + row_of_head, query0, size.queries);
    load_statistics<Config>(Shared::statistics(stage), 1, gradients.delta + row_of_head, query0, size.queries);
    if (drops)
      make_dropout_bits<Config, Config::kStreamedRows, Config::kResidentRows>(Shared::streamed_bits(stage), attention,
                                                                              philox_sample, head, query0, key0);
  };

  const int warp_row = warp_index() * Config::kWarpRows; // the warp's first row of the tile
  Fragment<Config::kMmaM, Config::kBlockColumns> dk{}, dv{};
  if (pass.steps > 0) {
    load_tile<Config, Config::kResidentRows>(s_k, head_of<T>(attention.k, sample, key_head), key0, key_end,
                                             size.head_dim);
    load_tile<Config, Config::kResidentRows>(s_v, head_of<T>(attention.v, sample, key_head), key0, key_end,
                                             size.head_dim);
    load_stage(0);
  }
  for (int step = 0; step < pass.steps; ++step) {
    cp_async_wait_all();
    __syncthreads(); // this tile has arrived, and all threads have finished the previous one
    const int stage = step & 1;
    const std::int64_t query0 = loaded.query0; // of this step
    if (step + 1 < pass.steps) {
      loaded.advance(Config::kStreamedRows, pass, size.queries);
      load_stage(stage ^ 1);
    }
    const float* statistics = Shared::statistics(stage);
    Fragment<Config::kMmaM, Config::kStreamedRows> scores{}, dp{};
    mma_abt<Config>(scores, s_k + Config::offset(warp_row, 0), s_q(stage));
    // Columns past the last query have lse = delta = 0 and q = dout = 0: P is 1 there, but its products are 0. P may be
    // infinite where hidden, as in dq. Here the mask comes before the product, because dv uses P itself.
    for_each_element<Config::kMmaM, Config::kStreamedRows>([&](FragmentIndex i) {
      float& score = scores[i.mma_m][i.mma_n][i.reg];
      const float2 lse = statistics_of_lane<Config>(statistics, i.mma_n, 0);
      const float lse_in_base = (i.reg % 2 == 0 ? lse.x : lse.y) * kLogOfE<T>;
      score = exp_in_base<T>(score * scale_in_base - lse_in_base);
    });
    auto& p = scores;
    const TileMask mask = tile_mask(attention.mask, query0, key0, sample_keys);
    if (!mask.is_full(Config::kResidentRows)) mask_scores<Config, true>(p, mask, warp_row, 0);
    mma_abt<Config>(dp, s_v + Config::offset(warp_row, 0), s_do(stage));
    if (drops) {
      score_gradients<Config, true>(p, dp, statistics, Shared::streamed_bits(stage), warp_row, attention.drop.scale);
    } else {
      score_gradients<Config, false>(p, dp, statistics, nullptr, warp_row, 1);
    }
    auto& ds = dp;
    mma_ab<Config>(dv, p, s_do(stage) + first_column);
    mma_ab<Config>(dk, ds, s_q(stage) + first_column);
  }
  float dv_scale[2 * Config::kMmaM], dk_scale[2 * Config::kMmaM];
#pragma unroll
  for (int i = 0; i < 2 * Config::kMmaM; ++i) {
    dv_scale[i] = attention.drop.scale;
    dk_scale[i] = attention.scale;
  }
  store_fragment<Config>(dv, dv_scale, head_of<T>(gradients.dv, sample, key_head), key0 + warp_row, size.keys,
                         first_column, size.head_dim, gradients.add_kv);
  store_fragment<Config>(dk, dk_scale, head_of<T>(gradients.dk, sample, key_head), key0 + warp_row, size.keys,
                         first_column, size.head_dim, gradients.add_kv);
}

template <class T>
void run_backward(const AttentionParams& attention, const AttentionGradients& gradients, std::size_t max_shared_bytes,
                  const OpContext& context) {
  const AttentionSizes& size = attention.size;
  const std::int64_t rows = size.samples * size.heads * size.queries;
  const std::int64_t delta_blocks = ceil_div(rows, kBlockSize / kWarpSize * delta_rows<T>(size.head_dim));
  const cuda::Launch launch_delta("attention_backward_delta", cuda::grid_of_blocks(delta_blocks), context);
  launch_delta(attention_backward_delta<T>, attention, gradients);
  dispatch_head_dim<T>(size.head_dim, max_shared_bytes, [&]<class Sizes>(Sizes) {
    using Dq = typename Sizes::BackwardDq;
    const cuda::Launch launch_dq("attention_backward_dq", tiled_grid<Dq>(query_blocks<Dq>(size), kBackwardShared<Dq>),
                                 context);
    launch_dq(attention_backward_dq<Dq>, attention, gradients);
    using Dkdv = typename Sizes::BackwardDkdv;
    const cuda::Launch launch_dkdv("attention_backward_dkdv",
                                   tiled_grid<Dkdv>(key_blocks<Dkdv>(size), kBackwardShared<Dkdv>), context);
    launch_dkdv(attention_backward_dkdv<Dkdv>, attention, gradients);
  });
}

} // namespace triax::kernels_fused
