// SPDX-License-Identifier: Apache-2.0
// Tiles of attention: their sizes for each width of heads, and the layout of shared memory.
//
// Host threads: any. Kernels call these functions, too.
//
// A block keeps resident tiles of kResidentRows rows (queries; in dkdv, keys), and iterates over the others, which are
// streamed in tiles of kStreamedRows. These are not FlashAttention's M and N, which are always queries and keys. Shared
// memory has two stages of streamed tiles: one is used while the next is copied.
// Each warp works on kMmaM strips of 16 rows. Rows are padded by 16 bytes to an odd number of 16-byte vectors. So eight
// consecutive rows, read at the same column by one instruction, are in different banks. The padding is not wasted: it
// holds the dropout bits and the statistics of queries. So a block needs no more than the 99 KiB that GPUs of compute
// capability 8.6, 8.9 and 12.x allow; sm_80 allows 163 KiB.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "attention_plan.hpp"
#include "kernel_sizes.hpp"
#include "triax/half.hpp"

namespace triax::kernels_fused {

/// Shared memory of a block that every GPU of compute capability 8.0 or later allows (CUDA C++ Programming Guide,
/// technical specifications).
inline constexpr std::size_t kMinSharedLimit = 99 * 1024;

/// kMinBlocks: resident blocks per SM for which nvcc limits registers (__launch_bounds__). Shared memory may allow
/// fewer: on sm_80 with heads of 97 to 128 elements, for the backward in fp32 and for dq in 16 bits. kColumnBlocks:
/// number of blocks that share the columns of a tile's results, if the registers of one block cannot hold them all;
/// each computes kBlockColumns.
template <class Element, int kHeadDim_, int kResidentRows_, int kStreamedRows_, int kWarps_, int kMinBlocks_,
          int kColumnBlocks_ = 1>
struct AttentionConfig {
  using T = Element;
  static constexpr int kHeadDim = kHeadDim_, kResidentRows = kResidentRows_, kStreamedRows = kStreamedRows_,
                       kWarps = kWarps_;
  static constexpr int kMinBlocks = kMinBlocks_, kColumnBlocks = kColumnBlocks_;
  static constexpr int kThreads = static_cast<int>(kWarpSize) * kWarps;
  static constexpr int kMmaM = kResidentRows / kWarps / 16, kWarpRows = 16 * kMmaM;
  static constexpr int kBlockColumns = kHeadDim / kColumnBlocks;
  static constexpr int kStride = kHeadDim + kVec<T>;
  static_assert(kMmaM * 16 * kWarps == kResidentRows && kStreamedRows % 16 == 0 && kBlockColumns % 16 == 0);
  static_assert(kHeadDim / kVec<T> % 2 == 0, "so that padding spreads the rows over the banks");

  TRIAX_HD static constexpr int offset(int row, int column) { return row * kStride + column; }

  // Offsets in shared memory, in bytes: resident tiles, then both stages of streamed tiles.
  static constexpr std::size_t kResidentBytes = sizeof(T) * kResidentRows * kStride;
  static constexpr std::size_t kStreamedBytes = sizeof(T) * kStreamedRows * kStride;
  static_assert(kResidentBytes % 16 == 0 && kStreamedBytes % 16 == 0);
  /// The k-th of a stage's two streamed tiles.
  static constexpr std::size_t streamed(int resident_tiles, int stage, int k) {
    return resident_tiles * kResidentBytes + (2 * stage + k) * kStreamedBytes;
  }
  static constexpr std::size_t shared_bytes(int resident_tiles) { return streamed(resident_tiles, 2, 0); }

  // A row of a tile, kStride elements:
  //
  //   | element 0 | ... | element kHeadDim - 1 | padding, 16 bytes |
  //
  // In dkdv, the padding of row r of streamed tile 1 (dout) holds the statistics of queries 2r and 2r + 1, as {lse,
  // lse, delta, delta}: a lane's two columns are such a pair, so it reads a statistic of both as one float2. In the
  // tile whose rows are queries, the padding holds up to eight 16-bit numbers of dropout bits.
  static constexpr int kBitsStride =
      kStride * static_cast<int>(sizeof(T) / sizeof(std::uint16_t)); // from the numbers of a query to the next query's
  /// The offset of a statistic of query `query` of a streamed tile; k: 0 lse, 1 delta.
  TRIAX_HD static constexpr int statistic(int query, int k) {
    return (query >> 1) * (kStride * static_cast<int>(sizeof(T)) / 4) + 2 * k + (query & 1);
  }
  static_assert(2 * kStreamedRows / kKeptTogether <= 8 && kResidentRows / kKeptTogether <= 8,
                "both stages of a query's bits");
};

/// The arguments of an AttentionConfig.
struct TileShape {
  int resident_rows, streamed_rows, warps, min_blocks, column_blocks = 1;
};
/// The tiles for heads of up to head_dim elements: as large as registers allow without spilling.
struct HeadTiles {
  int head_dim;
  TileShape forward, dq, dkdv;
};
template <class T> // of 16 bits
inline constexpr std::array<HeadTiles, 5> kHeadTiles{{
    // resident rows, streamed rows, warps, min blocks, column blocks
    {32, {128, 64, 4, 2}, {128, 32, 4, 3}, {128, 32, 4, 2}},
    {64, {128, 64, 4, 2}, {128, 32, 4, 2}, {128, 32, 4, 2}},
    {96, {128, 32, 4, 2}, {64, 32, 4, 3}, {64, 32, 4, 2}},
    {128, {128, 32, 4, 2}, {64, 32, 4, 3}, {64, 32, 4, 2}},
    {kMaxHeadDim, {64, 32, 4, 1}, {64, 16, 4, 1}, {64, 16, 4, 1, 2}},
}};
template <>
inline constexpr std::array<HeadTiles, 5> kHeadTiles<float>{{
    {32, {64, 32, 4, 2}, {64, 32, 4, 2}, {64, 32, 4, 2}},
    {64, {64, 32, 4, 2}, {64, 32, 4, 2}, {64, 32, 4, 2}},
    {96, {64, 16, 4, 2}, {64, 16, 4, 2}, {64, 16, 4, 2}},
    {128, {64, 16, 4, 2}, {64, 16, 4, 2}, {64, 16, 4, 2}},
    {kMaxHeadDim, {64, 16, 4, 1}, {32, 16, 2, 1, 2}, {32, 16, 2, 1, 2}},
}};
/// The same bits in 99 KiB of shared memory, with fewer warps: they differ in the rows of a block only.
inline constexpr HeadTiles kSmallTiles{kMaxHeadDim, {32, 16, 2, 1}, {16, 16, 1, 1, 2}, {16, 16, 1, 1, 2}};

template <class T, HeadTiles kTiles>
struct TileSizes {
  template <TileShape kShape>
  using Config = AttentionConfig<T, kTiles.head_dim, kShape.resident_rows, kShape.streamed_rows, kShape.warps,
                                 kShape.min_blocks, kShape.column_blocks>;
  using Forward = Config<kTiles.forward>;
  using BackwardDq = Config<kTiles.dq>;
  using BackwardDkdv = Config<kTiles.dkdv>;
};
using SmallTileSizes = TileSizes<float, kSmallTiles>;

template <class Config>
inline constexpr std::size_t kForwardShared = Config::shared_bytes(1);
template <class Config>
inline constexpr std::size_t kBackwardShared = Config::shared_bytes(2);
template <class Sizes>
inline constexpr std::size_t kMaxShared = std::max({kForwardShared<typename Sizes::Forward>,
                                                    kBackwardShared<typename Sizes::BackwardDq>,
                                                    kBackwardShared<typename Sizes::BackwardDkdv>});

// Every GPU can run all tiles but the widest of fp32, which SmallTileSizes replace.
template <class T, std::size_t... kRows>
constexpr bool fits_every_gpu(std::index_sequence<kRows...>) {
  return ((kMaxShared<TileSizes<T, kHeadTiles<T>[kRows]>> <= kMinSharedLimit) && ...);
}
static_assert(fits_every_gpu<Bf16>(std::make_index_sequence<5>{}));
static_assert(fits_every_gpu<F16>(std::make_index_sequence<5>{}));
static_assert(fits_every_gpu<float>(std::make_index_sequence<4>{}));
static_assert(kMaxShared<SmallTileSizes> <= kMinSharedLimit);

// One block per tile and block of columns; none if a size is 0. attention_supported() refuses more than a grid has.
template <class Config>
std::int64_t query_blocks(const AttentionSizes& size) {
  return size.samples * size.heads * ceil_div(size.queries, Config::kResidentRows) * Config::kColumnBlocks;
}
template <class Config>
std::int64_t key_blocks(const AttentionSizes& size) {
  return size.samples * size.key_heads * ceil_div(size.keys, Config::kResidentRows) * Config::kColumnBlocks;
}

template <class Config>
cuda::Grid tiled_grid(std::int64_t blocks, std::size_t shared_bytes) {
  return {static_cast<unsigned>(blocks), Config::kThreads, shared_bytes};
}

/// Calls body(TileSizes<...>{}) with the sizes for heads of `head_dim` elements, in the shared memory that a block may
/// have.
template <class T, class Body>
void dispatch_head_dim(int head_dim, std::size_t max_shared_bytes, Body&& body) {
  constexpr const auto& kTiles = kHeadTiles<T>;
  if (head_dim <= kTiles[0].head_dim) return body(TileSizes<T, kTiles[0]>{});
  if (head_dim <= kTiles[1].head_dim) return body(TileSizes<T, kTiles[1]>{});
  if (head_dim <= kTiles[2].head_dim) return body(TileSizes<T, kTiles[2]>{});
  if (head_dim <= kTiles[3].head_dim) return body(TileSizes<T, kTiles[3]>{});
  using Widest = TileSizes<T, kTiles[4]>;
  if constexpr (std::is_same_v<T, float>) {
    if (max_shared_bytes < kMaxShared<Widest>) return body(SmallTileSizes{});
  }
  body(Widest{});
}

} // namespace triax::kernels_fused
