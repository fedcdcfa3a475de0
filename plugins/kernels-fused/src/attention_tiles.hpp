// SPDX-License-Identifier: Apache-2.0
// Tiles of attention: their sizes for each head width, and the layout of shared memory.
//
// Threads: pure functions, any thread; also in kernels.
//
// A block has resident tiles of kRows rows (queries, or keys for their gradients), and iterates over the others, which
// are streamed in tiles of kColumns. Shared memory has two stages of these: one is used while the next is copied. Each
// warp works on kStrips strips of 16 rows. Rows are padded by 16 bytes to an odd number of 16-byte vectors. So eight
// consecutive rows, read at the same column by one instruction, are in different banks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "attention_plan.hpp"
#include "kernel_sizes.hpp"
#include "triax/half.hpp"

namespace triax::kernels_fused {

/// kMinBlocks: minimum of resident blocks per multiprocessor, as in __launch_bounds__. kParts: number of blocks that
/// share the columns of a tile's results, if the registers of one block cannot hold them all.
template <class Element, int kWidth_, int kRows_, int kColumns_, int kWarps_, int kMinBlocks_, int kParts_ = 1>
struct Tiles {
  using T = Element;
  static constexpr int kWidth = kWidth_, kRows = kRows_, kColumns = kColumns_, kWarps = kWarps_;
  static constexpr int kMinBlocks = kMinBlocks_, kParts = kParts_;
  static constexpr int kThreads = static_cast<int>(kWarpSize) * kWarps;
  static constexpr int kStrips = kRows / kWarps / 16, kWarpRows = 16 * kStrips;
  static constexpr int kPartWidth = kWidth / kParts;
  static constexpr int kStride = kWidth + kVec<T>;
  static_assert(kStrips * 16 * kWarps == kRows && kColumns % 16 == 0 && kPartWidth % 16 == 0);
  static_assert(kWidth / kVec<T> % 2 == 0, "so that padding spreads the rows over the banks");

  TRIAX_HD static constexpr int offset(int row, int column) { return row * kStride + column; }

  // Offsets in shared memory, in bytes: resident tiles, then both stages of streamed tiles, of bits and of statistics.
  static constexpr std::size_t kResidentBytes = sizeof(T) * kRows * kStride;
  static constexpr std::size_t kStreamedBytes = sizeof(T) * kColumns * kStride;
  static constexpr int kBits = kRows * kColumns / kKeptTogether; // 16-bit numbers per tile
  static constexpr std::size_t kBitsBytes = sizeof(std::uint16_t) * kBits;
  static constexpr std::size_t kStatisticsBytes = sizeof(float) * kColumns;
  static_assert(kResidentBytes % 16 == 0 && kStreamedBytes % 16 == 0 && kBitsBytes % 16 == 0);
  /// The k-th of a stage's two streamed tiles.
  static constexpr std::size_t streamed(int resident_tiles, int stage, int k) {
    return resident_tiles * kResidentBytes + (2 * stage + k) * kStreamedBytes;
  }
  static constexpr std::size_t bits(int resident_tiles, int stage) {
    return streamed(resident_tiles, 2, 0) + stage * kBitsBytes;
  }
  static constexpr std::size_t statistics(int resident_tiles, int stage, int k) {
    return bits(resident_tiles, 2) + (2 * stage + k) * kStatisticsBytes;
  }
};

/// The sizes for heads of up to kWidth elements: as large as registers allow without spilling.
template <class T, int kWidth>
struct TilesFor {
  static constexpr bool kTiny = kWidth <= 32, kNarrow = kWidth <= 64, kWide = kWidth > 128;
  static constexpr int kRows = kNarrow ? 128 : 64;
  using Forward = Tiles<T, kWidth, kWide ? 64 : 128, kNarrow ? 64 : 32, 4, kWide ? 1 : 2>;
  using BackwardDq = Tiles<T, kWidth, kRows, kWide ? 16 : 32, 4, kTiny ? 3 : kNarrow ? 2 : kWide ? 1 : 3>;
  using BackwardDkdv = Tiles<T, kWidth, kRows, kWide ? 16 : 32, 4, kWide ? 1 : 2, kWide ? 2 : 1>;
};
template <int kWidth>
struct TilesFor<float, kWidth> {
  static constexpr bool kWide = kWidth > 128; // two tiles of 64 rows and their results do not fit
  static constexpr int kColumns = kWidth <= 64 ? 32 : 16;
  using Forward = Tiles<float, kWidth, 64, kColumns, 4, kWide ? 1 : 2>;
  using BackwardDq = Tiles<float, kWidth, kWide ? 32 : 64, kColumns, kWide ? 2 : 4, kWide ? 1 : 2, kWide ? 2 : 1>;
  using BackwardDkdv = BackwardDq;
};

template <class Size>
inline constexpr std::size_t kForwardShared = Size::bits(1, 2);
template <class Size>
inline constexpr std::size_t kBackwardDqShared = Size::bits(2, 2);
template <class Size>
inline constexpr std::size_t kBackwardDkdvShared = Size::statistics(2, 2, 0);

// One block per tile; none if a size is 0. attention_supported() refuses more than a grid has.
template <class Size>
unsigned query_blocks(const AttentionSizes& size) {
  return static_cast<unsigned>(size.samples * size.heads * tiles_of(size.queries, Size::kRows) * Size::kParts);
}
template <class Size>
unsigned key_blocks(const AttentionSizes& size) {
  return static_cast<unsigned>(size.samples * size.key_heads * tiles_of(size.keys, Size::kRows) * Size::kParts);
}

// The largest of all, as attention_launch.cuh says.
static_assert(kBackwardDkdvShared<TilesFor<float, kMaxWidth>::BackwardDkdv> <= 131 * 1024);

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
