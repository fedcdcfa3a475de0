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
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "attention_plan.hpp"
#include "kernel_sizes.hpp"

namespace triax::kernels_fused {

/// Shared memory of a block that every GPU of compute capability 8.0 or later allows (CUDA C++ Programming Guide,
/// technical specifications).
inline constexpr std::size_t kMinSharedLimit = 99 * 1024;

/// kMinBlocks: resident blocks per SM for which nvcc limits registers (__launch_bounds__). Shared memory may allow
/// fewer: on sm_80 with heads of 97 to 128 elements, for the backward in fp32 and for dq in 16 bits. kParts: number of
/// blocks that share the columns of a tile's results, if the registers of one block cannot hold them all.
template <class Element, int kHeadDim_, int kResidentRows_, int kStreamedRows_, int kWarps_, int kMinBlocks_,
          int kParts_ = 1>
struct AttentionConfig {
  using T = Element;
  static constexpr int kHeadDim = kHeadDim_, kResidentRows = kResidentRows_, kStreamedRows = kStreamedRows_,
                       kWarps = kWarps_;
  static constexpr int kMinBlocks = kMinBlocks_, kParts = kParts_;
  static constexpr int kThreads = static_cast<int>(kWarpSize) * kWarps;
  static constexpr int kMmaM = kResidentRows / kWarps / 16, kWarpRows = 16 * kMmaM;
  static constexpr int kPartDim = kHeadDim / kParts;
  static constexpr int kStride = kHeadDim + kVec<T>;
  static_assert(kMmaM * 16 * kWarps == kResidentRows && kStreamedRows % 16 == 0 && kPartDim % 16 == 0);
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

  // The padding of a row has 16 bytes. In dkdv, row r of streamed tile 1 (dout) holds the statistics of queries 2r and
  // 2r + 1, as {lse, lse, delta, delta}: a lane's two columns are such a pair, so it reads a statistic of both as one
  // float2. Row q of the tile whose rows are queries holds up to eight 16-bit numbers of dropout bits.
  static constexpr int kBitsStride = kStride * static_cast<int>(sizeof(T) / sizeof(std::uint16_t)); // to the next row
  /// The offset of a statistic of query `query` of a streamed tile; k: 0 lse, 1 delta.
  TRIAX_HD static constexpr int statistic(int query, int k) {
    return (query >> 1) * (kStride * static_cast<int>(sizeof(T)) / 4) + 2 * k + (query & 1);
  }
  static_assert(2 * kStreamedRows / kKeptTogether <= 8 && kResidentRows / kKeptTogether <= 8,
                "both stages of a query's bits");
};

/// The sizes for heads of up to kHeadDim elements: as large as registers allow without spilling.
template <class T, int kHeadDim>
struct ConfigsFor {
  static constexpr bool kTiny = kHeadDim <= 32, kNarrow = kHeadDim <= 64, kWide = kHeadDim > 128;
  static constexpr int kResidentRows = kNarrow ? 128 : 64;
  using Forward = AttentionConfig<T, kHeadDim, kWide ? 64 : 128, kNarrow ? 64 : 32, 4, kWide ? 1 : 2>;
  using BackwardDq = AttentionConfig<T, kHeadDim, kResidentRows, kWide ? 16 : 32, 4,
                                     kTiny     ? 3
                                     : kNarrow ? 2
                                     : kWide   ? 1
                                               : 3>;
  using BackwardDkdv = AttentionConfig<T, kHeadDim, kResidentRows, kWide ? 16 : 32, 4, kWide ? 1 : 2, kWide ? 2 : 1>;
};
template <int kHeadDim>
struct ConfigsFor<float, kHeadDim> {
  static constexpr bool kWide = kHeadDim > 128; // two tiles of 64 rows and their results do not fit
  static constexpr int kStreamedRows = kHeadDim <= 64 ? 32 : 16;
  using Forward = AttentionConfig<float, kHeadDim, 64, kStreamedRows, 4, kWide ? 1 : 2>;
  using BackwardDq =
      AttentionConfig<float, kHeadDim, kWide ? 32 : 64, kStreamedRows, kWide ? 2 : 4, kWide ? 1 : 2, kWide ? 2 : 1>;
  using BackwardDkdv = BackwardDq;
};

/// The same bits in 99 KiB of shared memory, with fewer warps: they differ in the rows of a block only.
struct SmallConfigs {
  using Forward = AttentionConfig<float, kMaxHeadDim, 32, 16, 2, 1>;
  using BackwardDq = AttentionConfig<float, kMaxHeadDim, 16, 16, 1, 1, 2>;
  using BackwardDkdv = BackwardDq;
};

template <class Config>
inline constexpr std::size_t kForwardShared = Config::shared_bytes(1);
template <class Config>
inline constexpr std::size_t kBackwardShared = Config::shared_bytes(2);
template <class For>
inline constexpr std::size_t kMaxShared = std::max({kForwardShared<typename For::Forward>,
                                                    kBackwardShared<typename For::BackwardDq>,
                                                    kBackwardShared<typename For::BackwardDkdv>});

static_assert(kMaxShared<SmallConfigs> <= kMinSharedLimit);

// One block per tile; none if a size is 0. attention_supported() refuses more than a grid has.
template <class Config>
unsigned query_blocks(const AttentionSizes& size) {
  return static_cast<unsigned>(size.samples * size.heads * tiles_of(size.queries, Config::kResidentRows) *
                               Config::kParts);
}
template <class Config>
unsigned key_blocks(const AttentionSizes& size) {
  return static_cast<unsigned>(size.samples * size.key_heads * tiles_of(size.keys, Config::kResidentRows) *
                               Config::kParts);
}

/// Calls use(ConfigsFor<...>{}) with the sizes for heads of `head_dim` elements, in the shared memory that a block may
/// have.
template <class T, class Use>
void with_configs(int head_dim, std::size_t max_shared_bytes, Use&& use) {
  if (head_dim <= 32) return use(ConfigsFor<T, 32>{});
  if (head_dim <= 64) return use(ConfigsFor<T, 64>{});
  if (head_dim <= 96) return use(ConfigsFor<T, 96>{});
  if (head_dim <= 128) return use(ConfigsFor<T, 128>{});
  using Widest = ConfigsFor<T, kMaxHeadDim>;
  constexpr bool kFitsEveryGpu = kMaxShared<Widest> <= kMinSharedLimit;
  if constexpr (!kFitsEveryGpu) {
    static_assert(std::is_same_v<T, float>, "SmallConfigs are of fp32");
    if (max_shared_bytes < kMaxShared<Widest>) return use(SmallConfigs{});
  }
  use(Widest{});
}

} // namespace triax::kernels_fused
