// SPDX-License-Identifier: Apache-2.0
// Steps of the attention kernels: loading tiles, products of tiles, masks and dropout of scores, storing rows.
//
// Threads: all threads of a block call load_*() and make_dropout_bits() together, all lanes of a warp the others. A
// warp has strips of 16 rows of the block's tile; the elements that a lane holds are those of mma_16x8x16() (PTX ISA,
// "Matrix fragments for mma.m16n8k16").
#pragma once

#include "attention_tiles.hpp"
#include "mma.cuh"
#include "vec16.cuh"

namespace triax::kernels_fused {

/// kColumns columns of kStrips strips of 16 rows, distributed over the lanes of one warp.
template <int kStrips, int kColumns>
using Fragment = float[kStrips][kColumns / 8][4];

/// An element that the calling lane holds: fragment[strip][tile][reg]. Its row and column are those of mma_16x8x16().
struct FragmentIndex {
  int strip, tile, reg;
  __device__ __forceinline__ int row() const { return 16 * strip + lane_index() / 4 + 8 * (reg / 2); } // of the warp
  __device__ __forceinline__ int column() const { return 8 * tile + lane_index() % 4 * 2 + reg % 2; }
};
/// Calls body(index) for each element of the lane, of kStrips strips and kColumns columns.
template <int kStrips, int kColumns, class Body>
__device__ __forceinline__ void for_each_element(Body body) {
#pragma unroll
  for (int i = 0; i < kStrips * kColumns / 2; ++i)
    body(FragmentIndex{i / (kColumns / 2), i / 4 % (kColumns / 8), i % 4});
}

extern __shared__ uint4 attention_memory[];

/// The block's shared memory: kResident tiles of kRows rows, and two stages of what is loaded for an iteration, at the
/// offsets of Tiles.
template <class Tile, int kResident>
struct SharedMemory {
  using T = typename Tile::T;
  __device__ __forceinline__ static T* resident(int k) { return at_byte<T>(k * Tile::kResidentBytes); }
  __device__ __forceinline__ static T* streamed(int stage, int k) {
    return at_byte<T>(Tile::streamed(kResident, stage, k));
  }
  // In the padding of rows, Tile::kBitsStride apart: a query's bits of a stage, if queries are resident or streamed.
  __device__ __forceinline__ static std::uint16_t* resident_bits(int stage) {
    return reinterpret_cast<std::uint16_t*>(resident(0) + Tile::kWidth) + stage * (Tile::kColumns / kKeptTogether);
  }
  __device__ __forceinline__ static std::uint16_t* streamed_bits(int stage) {
    return reinterpret_cast<std::uint16_t*>(streamed(stage, 0) + Tile::kWidth);
  }
  /// At the indices Tile::statistic().
  __device__ __forceinline__ static float* statistics(int stage) {
    return reinterpret_cast<float*>(streamed(stage, 1) + Tile::kWidth);
  }

 private:
  template <class U>
  __device__ __forceinline__ static U* at_byte(std::size_t offset) {
    return reinterpret_cast<U*>(reinterpret_cast<std::byte*>(attention_memory) + offset);
  }
};

/// Loads rows [first, first + kRows) of a head into a tile. Rows from `end` on, and columns from `width` on, are zeros.
template <class Tile, int kRows>
__device__ __forceinline__ void load_tile(typename Tile::T* tile, const typename Tile::T* head, const HeadView& view,
                                          std::int64_t first, std::int64_t end, int width) {
  using T = typename Tile::T;
  constexpr int kVecsPerRow = Tile::kWidth / kVec<T>, kSteps = kRows * kVecsPerRow / Tile::kThreads;
  static_assert(kRows * kVecsPerRow % Tile::kThreads == 0);
  if (view.whole_vecs &&
      Tile::kThreads % kVecsPerRow == 0) { // a thread's vectors are below each other, kApart rows apart
    constexpr int kApart = Tile::kThreads / kVecsPerRow;
    const int row = thread_index() / kVecsPerRow, column = thread_index() % kVecsPerRow * kVec<T>;
    const int rows = end - first < kRows ? static_cast<int>(end - first) : kRows;
    const int left = column < width ? rows - row : 0;
    const T* from = head + (first + row) * view.row + column; // rows past the end are not read
    T* to = tile + Tile::offset(row, column);
#pragma unroll
    for (int step = 0; step < kSteps; ++step, from += kApart * view.row)
      cp_async_16(to + Tile::offset(step * kApart, 0), from, step * kApart < left);
  } else if (view.whole_vecs) {
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
      const int i = step * Tile::kThreads + thread_index(), row = i / kVecsPerRow, column = i % kVecsPerRow * kVec<T>;
      const bool there = first + row < end && column < width;
      cp_async_16(tile + Tile::offset(row, column), there ? head + (first + row) * view.row + column : head, there);
    }
  } else {
#pragma unroll 1
    for (int i = thread_index(); i < kRows * Tile::kWidth; i += Tile::kThreads) {
      const int row = i / Tile::kWidth, column = i % Tile::kWidth;
      const bool there = first + row < end && column < width;
      tile[Tile::offset(row, column)] = there ? head[(first + row) * view.row + column] : T{};
    }
  }
}

/// Loads the k-th statistic of kColumns rows from `first` on; zeros from `end` on.
template <class Tile>
__device__ __forceinline__ void load_statistics(float* to, int k, const float* from, std::int64_t first,
                                                std::int64_t end) {
#pragma unroll 1
  for (int i = thread_index(); i < Tile::kColumns; i += Tile::kThreads) {
    const bool there = first + i < end;
    cp_async_4(to + Tile::statistic(i, k), there ? from + first + i : from, there);
  }
}

/// Dropout bits of kQueries x kKeys scores: number [query][key / 16], bit key % 16; the numbers of a query are
/// Tile::kBitsStride apart from those of the next.
template <class Tile, int kQueries, int kKeys>
__device__ __forceinline__ void make_dropout_bits(std::uint16_t* bits, const Attention& attention, std::uint32_t sample,
                                                  std::int64_t head, std::int64_t first_query, std::int64_t first_key) {
  constexpr int kNumbers = kKeys / kKeptTogether;
#pragma unroll 1
  for (int i = thread_index(); i < kQueries * kNumbers; i += Tile::kThreads) {
    const std::uint64_t first = score_element(attention.drop, attention.mask, head, first_query + i / kNumbers,
                                              first_key + i % kNumbers * kKeptTogether);
    const std::uint32_t kept = kept_bits(attention.drop, sample, first);
    bits[i / kNumbers * Tile::kBitsStride + i % kNumbers] = static_cast<std::uint16_t>(kept);
  }
}

/// A block's tile of queries of one head, and the keys that they see, which the block iterates over in `tiles` tiles.
template <class Tile>
struct QueryTile {
  TileCoordinates at;
  std::int64_t first, last, key_head; // queries [first, last)
  std::int64_t visible, seen;         // keys of the sample; keys [0, seen) that the last query sees
  int tiles;
  bool drops;
  std::uint32_t sample; // number of the sample, for dropout

  __device__ __forceinline__ QueryTile(const Attention& attention, std::int64_t block)
      : at(tile_of_block(block, tiles_of(attention.size.queries, Tile::kRows), attention.size.heads, true)),
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
    load_tile<Tile, Tile::kColumns>(Shared::streamed(stage, 0), head_of<T>(attention.k, at.sample, key_head),
                                    attention.k, begin, seen, width);
    load_tile<Tile, Tile::kColumns>(Shared::streamed(stage, 1), head_of<T>(attention.v, at.sample, key_head),
                                    attention.v, begin, seen, width);
    if (drops)
      make_dropout_bits<Tile, Tile::kRows, Tile::kColumns>(Shared::resident_bits(stage), attention, sample, at.head,
                                                           first, begin);
  }
  __device__ __forceinline__ TileMask mask(const Attention& attention, int index) const {
    return tile_mask(attention.mask, first, std::int64_t{index} * Tile::kColumns, visible);
  }
};

/// out += a b^T: a has the warp's rows, and b's rows are the columns of out. a is multiplied by `sign`, 1 or -1.
template <class Tile>
__device__ __forceinline__ void add_abt(Fragment<Tile::kStrips, Tile::kColumns>& out, const typename Tile::T* a,
                                        const typename Tile::T* b, float sign = 1) {
  using T = typename Tile::T;
  const int lane = lane_index();
  if constexpr (std::is_same_v<T, float>) {
    // The lane computes rows lane / 4 (+ 8) and columns 2 (lane % 4) (+ 1) of each 16 x 8, as mma does.
    const float *a_rows = a + Tile::offset(lane / 4, 0), *b_rows = b + Tile::offset(lane % 4 * 2, 0);
#pragma unroll 2
    for (int k = 0; k < Tile::kWidth; k += 4) {
      float4 a_regs[Tile::kStrips][2];
#pragma unroll
      for (int row = 0; row < 2 * Tile::kStrips; ++row) {
        float4& x = a_regs[row / 2][row % 2];
        x = *reinterpret_cast<const float4*>(a_rows + Tile::offset(8 * row, k));
        x = make_float4(x.x * sign, x.y * sign, x.z * sign, x.w * sign);
      }
#pragma unroll
      for (int n = 0; n < Tile::kColumns / 8; ++n) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const auto y = *reinterpret_cast<const float4*>(b_rows + Tile::offset(8 * n + odd, k));
#pragma unroll
          for (int row = 0; row < 2 * Tile::kStrips; ++row) {
            const float4 x = a_regs[row / 2][row % 2];
            float& sum = out[row / 2][n][row % 2 * 2 + odd];
            sum += x.x * y.x;
            sum += x.y * y.y;
            sum += x.z * y.z;
            sum += x.w * y.w;
          }
        }
      }
    }
  } else {
    const std::uint32_t flip = sign < 0 ? 0x80008000u : 0u; // flips the signs of both halves
    const T* a_rows = a + Tile::offset(lane % 16, lane / 16 * 8);
    const T* b_rows = b + Tile::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
#pragma unroll
    for (int k = 0; k < Tile::kWidth; k += 16) {
      std::uint32_t a_regs[Tile::kStrips][4];
#pragma unroll
      for (int strip = 0; strip < Tile::kStrips; ++strip) {
        ldmatrix(a_regs[strip], a_rows + Tile::offset(16 * strip, k));
#pragma unroll
        for (int reg = 0; reg < 4; ++reg) a_regs[strip][reg] ^= flip;
      }
#pragma unroll
      for (int n = 0; n < Tile::kColumns / 16; ++n) {
        std::uint32_t b_regs[4];
        ldmatrix(b_regs, b_rows + Tile::offset(16 * n, k));
#pragma unroll
        for (int strip = 0; strip < Tile::kStrips; ++strip) {
          mma_16x8x16<T>(out[strip][2 * n], a_regs[strip], b_regs[0], b_regs[1]);
          mma_16x8x16<T>(out[strip][2 * n + 1], a_regs[strip], b_regs[2], b_regs[3]);
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
      float a_regs[2 * Tile::kStrips];
#pragma unroll
      for (int row = 0; row < 2 * Tile::kStrips; ++row)
        a_regs[row] = __shfl_sync(kAllLanes, a[row / 2][k / 8][row % 2 * 2 + k % 2], from);
#pragma unroll
      for (int n = 0; n < Tile::kPartWidth / 8; ++n) {
        const auto b_regs = *reinterpret_cast<const float2*>(b + Tile::offset(k, 8 * n + lane % 4 * 2));
#pragma unroll
        for (int row = 0; row < 2 * Tile::kStrips; ++row) {
          out[row / 2][n][row % 2 * 2] += a_regs[row] * b_regs.x;
          out[row / 2][n][row % 2 * 2 + 1] += a_regs[row] * b_regs.y;
        }
      }
    }
  } else {
    const T* b_rows = b + Tile::offset(lane % 16, lane / 16 * 8);
#pragma unroll
    for (int k = 0; k < Tile::kColumns / 16; ++k) { // two tiles of 8 columns are one operand of 16
      std::uint32_t a_regs[Tile::kStrips][4];
#pragma unroll
      for (int strip = 0; strip < Tile::kStrips; ++strip) {
#pragma unroll
        for (int reg = 0; reg < 4; ++reg) {
          const float* pair = a[strip][2 * k + reg / 2] + reg % 2 * 2;
          a_regs[strip][reg] = pair_from_floats<T>(pair[0], pair[1]);
        }
      }
#pragma unroll
      for (int n = 0; n < Tile::kPartWidth / 16; ++n) {
        std::uint32_t b_regs[4];
        ldmatrix_transposed(b_regs, b_rows + Tile::offset(16 * k, 16 * n));
#pragma unroll
        for (int strip = 0; strip < Tile::kStrips; ++strip) {
          mma_16x8x16<T>(out[strip][2 * n], a_regs[strip], b_regs[0], b_regs[1]);
          mma_16x8x16<T>(out[strip][2 * n + 1], a_regs[strip], b_regs[2], b_regs[3]);
        }
      }
    }
  }
}

template <class T>
__device__ __forceinline__ void store_pair(T* to, float low, float high) {
  if constexpr (std::is_same_v<T, float>) {
    *reinterpret_cast<float2*>(to) = make_float2(low, high);
  } else {
    *reinterpret_cast<std::uint32_t*>(to) = pair_from_floats<T>(low, high);
  }
}
/// Writes the warp's rows, multiplied by their factors, to rows `first`... and columns `column`... of a head, or adds
/// them to what is there.
template <class Tile>
__device__ __forceinline__ void store_fragment(const Fragment<Tile::kStrips, Tile::kPartWidth>& fragment,
                                               const float (&factors)[Tile::kStrips][2], typename Tile::T* head,
                                               const HeadView& view, std::int64_t first, std::int64_t end, int column,
                                               int width, bool adds = false) {
  using T = typename Tile::T;
#pragma unroll
  for (int i = 0; i < 2 * Tile::kStrips; ++i) {
    const std::int64_t row = first + 8 * i + lane_index() / 4;
    if (row >= end) continue;
    T* to = head + row * view.row;
#pragma unroll
    for (int n = 0; n < Tile::kPartWidth / 8; ++n) {
      const int even = column + 8 * n + lane_index() % 4 * 2;
      const float factor = factors[i / 2][i % 2];
      float low = fragment[i / 2][n][i % 2 * 2] * factor, high = fragment[i / 2][n][i % 2 * 2 + 1] * factor;
      if (adds) {
        if (even < width) low += to_float(to[even]);
        if (even + 1 < width) high += to_float(to[even + 1]);
      }
      if (view.pairs && even + 1 < width) {
        store_pair(to + even, low, high);
      } else {
        if (even < width) to[even] = from_float<T>(low);
        if (even + 1 < width) to[even + 1] = from_float<T>(high);
      }
    }
  }
}

/// Sets hidden scores to `value`. The rows of the fragment are queries from `row` on, its columns are keys; or the
/// reverse, if kRowsAreKeys.
template <class Tile, bool kRowsAreKeys = false>
__device__ __forceinline__ void mask_scores(Fragment<Tile::kStrips, Tile::kColumns>& scores, const TileMask& mask,
                                            int row, float value) {
  for_each_element<Tile::kStrips, Tile::kColumns>([&](FragmentIndex i) {
    const bool seen = kRowsAreKeys ? mask.sees(i.column(), row + i.row()) : mask.sees(row + i.row(), i.column());
    if (!seen) scores[i.strip][i.tile][i.reg] = value;
  });
}
/// Sets dropped scores to 0. bits: those of make_dropout_bits().
template <class Tile>
__device__ __forceinline__ void drop_scores(Fragment<Tile::kStrips, Tile::kColumns>& scores, const std::uint16_t* bits,
                                            int row) {
#pragma unroll
  for (int i = 0; i < Tile::kStrips * Tile::kColumns / 4; ++i) { // two columns of one row
    const FragmentIndex even{i / (Tile::kColumns / 4), i / 2 % (Tile::kColumns / 8), i % 2 * 2};
    const int kept = bits[(row + even.row()) * Tile::kBitsStride + even.tile / 2] >> (even.column() % kKeptTogether);
    if (!(kept & 1)) scores[even.strip][even.tile][even.reg] = 0;
    if (!(kept & 2)) scores[even.strip][even.tile][even.reg + 1] = 0;
  }
}

} // namespace triax::kernels_fused
