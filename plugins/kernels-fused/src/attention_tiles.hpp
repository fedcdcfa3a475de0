// SPDX-License-Identifier: Apache-2.0
// Tiles of attention: their sizes for each head width, and the layout of shared memory.
//
// Threads: pure functions, any thread; also in kernels.
//
// A kernel keeps kRows rows of its own (queries, or keys for their gradients), and iterates over the others in tiles of
// kColumns. Shared memory has two of these tiles: one is used while the next is copied. Each warp works on kStrips
// strips of 16 rows. Rows are padded by 16 bytes to an odd number of 16-byte pieces. So eight consecutive rows, read at
// the same column by one instruction, are in different banks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "attention_plan.hpp"
#include "triax/half.hpp"

namespace triax::kernels_fused {

/// kBlocks: blocks per multiprocessor, limited by registers. kParts: number of blocks that share the columns of a
/// tile's results, if the registers of one block cannot hold them all.
template <class Element, int kWidth_, int kRows_, int kColumns_, int kWarps_, int kBlocks_, int kParts_ = 1>
struct Tiles {
  using T = Element;
  static constexpr int kWidth = kWidth_, kRows = kRows_, kColumns = kColumns_, kWarps = kWarps_;
  static constexpr int kBlocks = kBlocks_, kParts = kParts_;
  static constexpr int kThreads = 32 * kWarps, kStrips = kRows / kWarps / 16, kWarpRows = 16 * kStrips;
  static constexpr int kPartWidth = kWidth / kParts;
  static constexpr int kPiece = 16 / static_cast<int>(sizeof(T)); // elements per 16 bytes
  static constexpr int kStride = kWidth + kPiece;
  static_assert(kStrips * 16 * kWarps == kRows && kColumns % 16 == 0 && kPartWidth % 16 == 0);
  static_assert(kWidth / kPiece % 2 == 0, "so that padding spreads the rows over the banks");

  TRIAX_HD static constexpr int at(int row, int column) { return row * kStride + column; }

  // Offsets in shared memory, in bytes: tiles of kRows, then both stages of the other tiles, then bits and statistics.
  static constexpr std::size_t kOwnBytes = sizeof(T) * kRows * kStride, kOtherBytes = sizeof(T) * kColumns * kStride;
  static constexpr int kBits = kRows * kColumns / kKeptTogether; // 16-bit numbers per tile
  static constexpr std::size_t kBitsBytes = sizeof(std::uint16_t) * kBits;
  static constexpr std::size_t kStatisticsBytes = sizeof(float) * kColumns;
  static_assert(kOwnBytes % 16 == 0 && kOtherBytes % 16 == 0 && kBitsBytes % 16 == 0);
  /// The k-th of a stage's two tiles.
  static constexpr std::size_t other(int own_tiles, int stage, int k) {
    return own_tiles * kOwnBytes + (2 * stage + k) * kOtherBytes;
  }
  static constexpr std::size_t bits(int own_tiles, int stage) { return other(own_tiles, 2, 0) + stage * kBitsBytes; }
  static constexpr std::size_t statistics(int own_tiles, int stage, int k) {
    return bits(own_tiles, 2) + (2 * stage + k) * kStatisticsBytes;
  }
};

/// The sizes for heads of up to kWidth elements: as large as registers allow without spilling.
template <class T, int kWidth>
struct TilesFor {
  static constexpr bool kTiny = kWidth <= 32, kNarrow = kWidth <= 64, kWide = kWidth > 128;
  static constexpr int kRows = kNarrow ? 128 : 64;
  using Forward = Tiles<T, kWidth, kWide ? 64 : 128, kNarrow ? 64 : 32, 4, kWide ? 1 : 2>;
  using Queries = Tiles<T, kWidth, kRows, kWide ? 16 : 32, 4, kTiny ? 3 : kNarrow ? 2 : kWide ? 1 : 3>;
  using Keys = Tiles<T, kWidth, kRows, kWide ? 16 : 32, 4, kWide ? 1 : 2, kWide ? 2 : 1>;
};
template <int kWidth>
struct TilesFor<float, kWidth> {
  static constexpr bool kWide = kWidth > 128; // two tiles of 64 rows and their results do not fit
  static constexpr int kColumns = kWidth <= 64 ? 32 : 16;
  using Forward = Tiles<float, kWidth, 64, kColumns, 4, kWide ? 1 : 2>;
  using Queries = Tiles<float, kWidth, kWide ? 32 : 64, kColumns, kWide ? 2 : 4, kWide ? 1 : 2, kWide ? 2 : 1>;
  using Keys = Queries;
};

template <class Size>
inline constexpr std::size_t kForwardShared = Size::bits(1, 2);
template <class Size>
inline constexpr std::size_t kQueriesShared = Size::bits(2, 2);
template <class Size>
inline constexpr std::size_t kKeysShared = Size::statistics(2, 2, 0);

// One block per tile; none if a size is 0.
template <class Size>
std::int64_t query_blocks(const AttentionSizes& size) {
  return size.samples * size.heads * tiles_of(size.queries, Size::kRows) * Size::kParts;
}
template <class Size>
std::int64_t key_blocks(const AttentionSizes& size) {
  return size.samples * size.key_heads * tiles_of(size.keys, Size::kRows) * Size::kParts;
}

/// Calls `use` with an integral constant: the tile width for heads of `width`.
template <class Use>
void with_width(int width, Use&& use) {
  if (width <= 32) return use(std::integral_constant<int, 32>{});
  if (width <= 64) return use(std::integral_constant<int, 64>{});
  if (width <= 96) return use(std::integral_constant<int, 96>{});
  if (width <= 128) return use(std::integral_constant<int, 128>{});
  use(std::integral_constant<int, kMaxWidth>{});
}

} // namespace triax::kernels_fused
