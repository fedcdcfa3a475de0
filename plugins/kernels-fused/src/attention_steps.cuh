// SPDX-License-Identifier: Apache-2.0
// Steps of the attention kernels: loading tiles, products of tiles, masks and dropout of scores, storing rows.
//
// Threads: all threads of a block call load_*() and make_dropout_bits() together, all lanes of a warp the others. A
// warp has strips of 16 rows of the block's tile; the elements that a lane holds are those of mma_16x8x16() (PTX ISA,
// "Matrix fragments for mma.m16n8k16").
#pragma once

#include "attention_tiles.hpp"
#include "mma.cuh"

namespace triax::kernels_fused {

/// kColumns columns of kStrips strips of 16 rows, distributed over the lanes of one warp.
template <int kStrips, int kColumns>
using Fragment = float[kStrips][kColumns / 8][4];

template <int kStrips, int kColumns>
__device__ __forceinline__ void clear(Fragment<kStrips, kColumns>& fragment) {
#pragma unroll
  for (int i = 0; i < kStrips * kColumns / 8 * 4; ++i)
    fragment[i / 4 / (kColumns / 8)][i / 4 % (kColumns / 8)][i % 4] = 0;
}

extern __shared__ uint4 attention_memory[];

/// The block's shared memory: kOwn tiles of kRows rows, and two stages of what is loaded for an iteration. Its layout
/// is that of Tiles.
template <class Tile, int kOwn>
struct SharedMemory {
  using T = typename Tile::T;
  __device__ __forceinline__ static T* own(int k) { return at<T>(k * Tile::kOwnBytes); }
  __device__ __forceinline__ static T* other(int stage, int k) { return at<T>(Tile::other(kOwn, stage, k)); }
  __device__ __forceinline__ static std::uint16_t* bits(int stage) {
    return at<std::uint16_t>(Tile::bits(kOwn, stage));
  }
  __device__ __forceinline__ static float* statistics(int stage, int k) {
    return at<float>(Tile::statistics(kOwn, stage, k));
  }

 private:
  template <class U>
  __device__ __forceinline__ static U* at(std::size_t offset) {
    return reinterpret_cast<U*>(reinterpret_cast<std::byte*>(attention_memory) + offset);
  }
};

/// Loads rows [first, first + kRows) of a head into a tile. Rows from `end` on, and columns from `width` on, are zeros.
template <class Tile, int kRows>
__device__ __forceinline__ void load_tile(typename Tile::T* tile, const typename Tile::T* head, const HeadView& view,
                                          std::int64_t first, std::int64_t end, int width) {
  using T = typename Tile::T;
  constexpr int kPieces = Tile::kWidth / Tile::kPiece, kSteps = kRows * kPieces / Tile::kThreads;
  static_assert(kRows * kPieces % Tile::kThreads == 0);
  if (view.chunks && Tile::kThreads % kPieces == 0) { // a thread's pieces are below each other, kApart rows apart
    constexpr int kApart = Tile::kThreads / kPieces;
    const int row = thread_index() / kPieces, column = thread_index() % kPieces * Tile::kPiece;
    const int rows = end - first < kRows ? static_cast<int>(end - first) : kRows;
    const int left = column < width ? rows - row : 0;
    const T* from = head + (first + row) * view.row + column; // rows past the end are not read
    T* to = tile + Tile::at(row, column);
#pragma unroll
    for (int step = 0; step < kSteps; ++step, from += kApart * view.row)
      cp_async_16(to + Tile::at(step * kApart, 0), from, step * kApart < left);
  } else if (view.chunks) {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
      const int i = step * Tile::kThreads + thread_index(), row = i / kPieces, column = i % kPieces * Tile::kPiece;
      const bool there = first + row < end && column < width;
      cp_async_16(tile + Tile::at(row, column), there ? head + (first + row) * view.row + column : head, there);
    }
  } else {
#pragma unroll 1
    for (int i = thread_index(); i < kRows * Tile::kWidth; i += Tile::kThreads) {
      const int row = i / Tile::kWidth, column = i % Tile::kWidth;
      const bool there = first + row < end && column < width;
      tile[Tile::at(row, column)] = there ? head[(first + row) * view.row + column] : T{};
    }
  }
}

/// Loads kColumns statistics of the rows from `first` on; zeros from `end` on.
template <class Tile>
__device__ __forceinline__ void load_statistics(float* to, const float* from, std::int64_t first, std::int64_t end) {
#pragma unroll 1
  for (int i = thread_index(); i < Tile::kColumns; i += Tile::kThreads) {
    const bool there = first + i < end;
    cp_async_4(to + i, there ? from + first + i : from, there);
  }
}

/// Dropout bits of kQueries x kKeys scores: number [query][key / 16], bit key % 16.
template <class Tile, int kQueries, int kKeys>
__device__ __forceinline__ void make_dropout_bits(std::uint16_t* bits, const Attention& attention, std::uint32_t sample,
                                                  std::int64_t head, std::int64_t first_query, std::int64_t first_key) {
  constexpr int kNumbers = kKeys / kKeptTogether;
#pragma unroll 1
  for (int i = thread_index(); i < kQueries * kNumbers; i += Tile::kThreads) {
    const std::uint64_t first = score_element(attention.drop, attention.mask, head, first_query + i / kNumbers,
                                              first_key + i % kNumbers * kKeptTogether);
    bits[i] = static_cast<std::uint16_t>(kept_bits(attention.drop, sample, first));
  }
}

/// A block's tile of queries of one head, and the keys that they see, which the block iterates over in `tiles` tiles.
template <class Tile>
struct QueryTile {
  TilePlace at;
  std::int64_t first, last, key_head; // queries [first, last)
  std::int64_t visible, seen;         // keys of the sample; keys [0, seen) that the last query sees
  int tiles;
  bool drops;
  std::uint32_t sample; // number of the sample, for dropout

  __device__ __forceinline__ QueryTile(const Attention& attention, std::int64_t block)
      : at(tile_place(block, tiles_of(attention.size.queries, Tile::kRows), attention.size.heads, true)),
        first(at.tile * Tile::kRows),
        last(first + Tile::kRows < attention.size.queries ? first + Tile::kRows : attention.size.queries),
        key_head(at.head / attention.size.group()),
        visible(visible_keys(attention.mask, at.sample, attention.size.keys)),
        seen(seen_by(attention.mask, last - 1, visible)),
        tiles(static_cast<int>(tiles_of(seen, Tile::kColumns))),
        drops(attention.drop.threshold != 0),
        sample(drops ? static_cast<std::uint32_t>(attention.drop.samples[at.sample]) : 0u) {}

  /// Starts to load keys, values and dropout bits of tile `index` to stage index % 2.
  template <class Shared>
  __device__ __forceinline__ void load_keys(const Attention& attention, int index) const {
    const int stage = index & 1, width = attention.size.width;
    const std::int64_t begin = std::int64_t{index} * Tile::kColumns;
    using T = typename Tile::T;
    load_tile<Tile, Tile::kColumns>(Shared::other(stage, 0), head_of<T>(attention.k, at.sample, key_head), attention.k,
                                    begin, seen, width);
    load_tile<Tile, Tile::kColumns>(Shared::other(stage, 1), head_of<T>(attention.v, at.sample, key_head), attention.v,
                                    begin, seen, width);
    if (drops)
      make_dropout_bits<Tile, Tile::kRows, Tile::kColumns>(Shared::bits(stage), attention, sample, at.head, first,
                                                           begin);
  }
  __device__ __forceinline__ TileMask mask(const Attention& attention, int index) const {
    return tile_mask(attention.mask, first, std::int64_t{index} * Tile::kColumns, visible);
  }
};

/// Four floats that are loaded together.
struct alignas(16) FourFloats {
  float at[4];
};
struct alignas(8) TwoFloats {
  float at[2];
};

/// out += a b^T: a has the warp's rows, and b's rows are the columns of out. a is multiplied by `sign`, 1 or -1.
template <class Tile>
__device__ __forceinline__ void add_abt(Fragment<Tile::kStrips, Tile::kColumns>& out, const typename Tile::T* a,
                                        const typename Tile::T* b, float sign = 1) {
  using T = typename Tile::T;
  const int lane = lane_index();
  if constexpr (std::is_same_v<T, float>) {
    const float *rows = a + Tile::at(lane / 4, 0), *columns = b + Tile::at(lane % 4 * 2, 0);
#pragma unroll 2
    for (int k = 0; k < Tile::kWidth; k += 4) {
      FourFloats x[Tile::kStrips][2];
#pragma unroll
      for (int row = 0; row < 2 * Tile::kStrips; ++row) {
        x[row / 2][row % 2] = *reinterpret_cast<const FourFloats*>(rows + Tile::at(8 * row, k));
#pragma unroll
        for (int i = 0; i < 4; ++i) x[row / 2][row % 2].at[i] *= sign;
      }
#pragma unroll
      for (int n = 0; n < Tile::kColumns / 8; ++n) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const auto y = *reinterpret_cast<const FourFloats*>(columns + Tile::at(8 * n + odd, k));
#pragma unroll
          for (int row = 0; row < 2 * Tile::kStrips; ++row) {
#pragma unroll
            for (int i = 0; i < 4; ++i) out[row / 2][n][row % 2 * 2 + odd] += x[row / 2][row % 2].at[i] * y.at[i];
          }
        }
      }
    }
  } else {
    const std::uint32_t flip = sign < 0 ? 0x80008000u : 0u; // flips the signs of both halves
    const T* rows = a + Tile::at(lane % 16, lane / 16 * 8);
    const T* columns = b + Tile::at(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
#pragma unroll
    for (int k = 0; k < Tile::kWidth; k += 16) {
      std::uint32_t x[Tile::kStrips][4];
#pragma unroll
      for (int strip = 0; strip < Tile::kStrips; ++strip) {
        ldmatrix(x[strip], rows + Tile::at(16 * strip, k));
#pragma unroll
        for (int i = 0; i < 4; ++i) x[strip][i] ^= flip;
      }
#pragma unroll
      for (int n = 0; n < Tile::kColumns / 16; ++n) {
        std::uint32_t y[4];
        ldmatrix(y, columns + Tile::at(16 * n, k));
#pragma unroll
        for (int strip = 0; strip < Tile::kStrips; ++strip) {
          mma_16x8x16<T>(out[strip][2 * n], x[strip], y[0], y[1]);
          mma_16x8x16<T>(out[strip][2 * n + 1], x[strip], y[2], y[3]);
        }
      }
    }
  }
}

/// out += a b: the warp holds a in registers, and b's rows are a's columns. Uses kPartWidth columns of b.
template <class Tile>
__device__ __forceinline__ void add_ab(Fragment<Tile::kStrips, Tile::kPartWidth>& out,
                                       const Fragment<Tile::kStrips, Tile::kColumns>& a, const typename Tile::T* b) {
  using T = typename Tile::T;
  const int lane = lane_index();
  if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int k = 0; k < Tile::kColumns; ++k) { // in lane k % 8 / 2 of the four lanes that share a row
      const int from = lane / 4 * 4 + k % 8 / 2;
      float x[2 * Tile::kStrips];
#pragma unroll
      for (int row = 0; row < 2 * Tile::kStrips; ++row)
        x[row] = __shfl_sync(kAllLanes, a[row / 2][k / 8][row % 2 * 2 + k % 2], from);
#pragma unroll
      for (int n = 0; n < Tile::kPartWidth / 8; ++n) {
        const auto y = *reinterpret_cast<const TwoFloats*>(b + Tile::at(k, 8 * n + lane % 4 * 2));
#pragma unroll
        for (int row = 0; row < 2 * Tile::kStrips; ++row) {
          out[row / 2][n][row % 2 * 2] += x[row] * y.at[0];
          out[row / 2][n][row % 2 * 2 + 1] += x[row] * y.at[1];
        }
      }
    }
  } else {
    const T* rows = b + Tile::at(lane % 16, lane / 16 * 8);
#pragma unroll
    for (int k = 0; k < Tile::kColumns / 16; ++k) { // two tiles of 8 columns are one operand of 16
      std::uint32_t x[Tile::kStrips][4];
#pragma unroll
      for (int strip = 0; strip < Tile::kStrips; ++strip) {
#pragma unroll
        for (int half = 0; half < 4; ++half) {
          const float* two = a[strip][2 * k + half / 2] + half % 2 * 2;
          x[strip][half] = pack<T>(two[0], two[1]);
        }
      }
#pragma unroll
      for (int n = 0; n < Tile::kPartWidth / 16; ++n) {
        std::uint32_t y[4];
        ldmatrix_transposed(y, rows + Tile::at(16 * k, 16 * n));
#pragma unroll
        for (int strip = 0; strip < Tile::kStrips; ++strip) {
          mma_16x8x16<T>(out[strip][2 * n], x[strip], y[0], y[1]);
          mma_16x8x16<T>(out[strip][2 * n + 1], x[strip], y[2], y[3]);
        }
      }
    }
  }
}

/// Writes the warp's rows, multiplied by their factors, to rows `first`... and columns `column`... of a head.
template <class Tile>
__device__ __forceinline__ void store(const Fragment<Tile::kStrips, Tile::kPartWidth>& fragment,
                                      const float (&factor)[Tile::kStrips][2], typename Tile::T* head,
                                      const HeadView& view, std::int64_t first, std::int64_t end, int column,
                                      int width) {
  using T = typename Tile::T;
#pragma unroll
  for (int row = 0; row < 2 * Tile::kStrips; ++row) {
    const std::int64_t place = first + 8 * row + lane_index() / 4;
    if (place >= end) continue;
    T* to = head + place * view.row;
#pragma unroll
    for (int n = 0; n < Tile::kPartWidth / 8; ++n) {
      const int at = column + 8 * n + lane_index() % 4 * 2;
      const float by = factor[row / 2][row % 2];
      const float one = fragment[row / 2][n][row % 2 * 2] * by, two = fragment[row / 2][n][row % 2 * 2 + 1] * by;
      if (view.pairs && at + 1 < width) {
        store_pair(to + at, one, two);
      } else {
        if (at < width) store_one(to + at, one);
        if (at + 1 < width) store_one(to + at + 1, two);
      }
    }
  }
}

/// Sets hidden scores to `value`. The rows of the fragment are queries from `row` on, its columns are keys.
template <class Tile>
__device__ __forceinline__ void mask_scores(Fragment<Tile::kStrips, Tile::kColumns>& scores, const TileMask& mask,
                                            int row, float value) {
#pragma unroll
  for (int i = 0; i < Tile::kStrips * Tile::kColumns / 2; ++i) {
    const int strip = i / (Tile::kColumns / 2), n = i / 4 % (Tile::kColumns / 8), e = i % 4;
    const int query = row + 16 * strip + lane_index() / 4 + 8 * (e / 2);
    if (!mask.sees(query, 8 * n + lane_index() % 4 * 2 + e % 2)) scores[strip][n][e] = value;
  }
}
/// Sets dropped scores to 0. bits: those of make_dropout_bits().
template <class Tile>
__device__ __forceinline__ void drop_scores(Fragment<Tile::kStrips, Tile::kColumns>& scores, const std::uint16_t* bits,
                                            int row) {
#pragma unroll
  for (int i = 0; i < Tile::kStrips * Tile::kColumns / 4; ++i) { // two columns of one row
    const int strip = i / (Tile::kColumns / 4), n = i / 2 % (Tile::kColumns / 8), half = i % 2;
    const int query = row + 16 * strip + lane_index() / 4 + 8 * half;
    const int kept = bits[query * (Tile::kColumns / kKeptTogether) + n / 2] >> (n % 2 * 8 + lane_index() % 4 * 2);
    if (!(kept & 1)) scores[strip][n][2 * half] = 0;
    if (!(kept & 2)) scores[strip][n][2 * half + 1] = 0;
  }
}

} // namespace triax::kernels_fused
