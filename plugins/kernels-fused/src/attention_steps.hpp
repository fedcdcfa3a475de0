// SPDX-License-Identifier: Apache-2.0
// Steps of the attention kernels: fetching tiles, products of tiles, dropout bits, writing rows.
//
// They are written for a "machine", an abstraction of a GPU thread with its warp and block (attention_machine.cuh).
// Tests run the same code on a host machine. All threads of a warp call a step together. The elements of a 16 x 8 tile
// that a thread holds are those of mma.m16n8k16 (PTX ISA, "Matrix fragments for mma.m16n8k16"): columns 2 (lane % 4)
// and the next, of rows lane / 4 and lane / 4 + 8. Element e of its four is in row lane / 4 + 8 (e / 2), column 2 (lane
// % 4) + e % 2.
#pragma once

#include <bit>

#include "attention_tiles.hpp"

#if defined(__CUDACC__)
#define TRIAX_STEP __device__ __forceinline__
#define TRIAX_UNROLL _Pragma("unroll")
#define TRIAX_PRAGMA(text) _Pragma(#text)
#define TRIAX_UNROLL_BY(count) TRIAX_PRAGMA(unroll count)
#define TRIAX_ROLLED _Pragma("unroll 1")
#else
#define TRIAX_STEP inline
#define TRIAX_UNROLL
#define TRIAX_UNROLL_BY(count)
#define TRIAX_ROLLED
#endif

namespace triax::kernels_fused {

/// kColumns columns of kStrips strips of 16 rows, distributed over the lanes of one warp.
template <int kStrips, int kColumns>
using Held = float[kStrips][kColumns / 8][4];

template <int kStrips, int kColumns>
TRIAX_STEP void clear(Held<kStrips, kColumns>& held) {
  TRIAX_UNROLL
  for (int i = 0; i < kStrips * kColumns / 8 * 4; ++i) held[i / 4 / (kColumns / 8)][i / 4 % (kColumns / 8)][i % 4] = 0;
}

/// Loads rows [first, first + kRows) of a head into a tile. Rows from `end` on, and columns from `width` on, are zeros.
template <class Size, int kRows, class Machine>
TRIAX_STEP void fetch(Machine& machine, typename Size::T* tile, const typename Size::T* head, const HeadView& view,
                      std::int64_t first, std::int64_t end, int width) {
  using T = typename Size::T;
  constexpr int kPieces = Size::kWidth / Size::kPiece, kSteps = kRows * kPieces / Size::kThreads;
  static_assert(kRows * kPieces % Size::kThreads == 0);
  if (view.chunks && Size::kThreads % kPieces == 0) { // a thread's pieces are below each other, kApart rows apart
    constexpr int kApart = Size::kThreads / kPieces;
    const int row = machine.thread() / kPieces, column = machine.thread() % kPieces * Size::kPiece;
    const int rows = end - first < kRows ? static_cast<int>(end - first) : kRows;
    const int left = column < width ? rows - row : 0;
    const T* from = head + (first + row) * view.row + column; // rows past the end are not read
    T* to = tile + Size::at(row, column);
    TRIAX_UNROLL
    for (int step = 0; step < kSteps; ++step, from += kApart * view.row)
      machine.copy_piece(to + Size::at(step * kApart, 0), from, step * kApart < left);
  } else if (view.chunks) {
    TRIAX_UNROLL_BY(4)
    for (int step = 0; step < kSteps; ++step) {
      const int i = step * Size::kThreads + machine.thread(), row = i / kPieces, column = i % kPieces * Size::kPiece;
      const bool there = first + row < end && column < width;
      machine.copy_piece(tile + Size::at(row, column), there ? head + (first + row) * view.row + column : head, there);
    }
  } else {
    TRIAX_ROLLED
    for (int i = machine.thread(); i < kRows * Size::kWidth; i += Size::kThreads) {
      const int row = i / Size::kWidth, column = i % Size::kWidth;
      const bool there = first + row < end && column < width;
      tile[Size::at(row, column)] = there ? head[(first + row) * view.row + column] : T{};
    }
  }
}

/// Loads kColumns statistics of the rows from `first` on; zeros from `end` on.
template <class Size, class Machine>
TRIAX_STEP void fetch_statistics(Machine& machine, float* to, const float* from, std::int64_t first, std::int64_t end) {
  TRIAX_ROLLED
  for (int i = machine.thread(); i < Size::kColumns; i += Size::kThreads) {
    const bool there = first + i < end;
    machine.copy_word(to + i, there ? from + first + i : from, there);
  }
}

/// Dropout bits of kQueries x kKeys scores: number [query][key / 16], bit key % 16.
template <class Size, int kQueries, int kKeys, class Machine>
TRIAX_STEP void make_bits(Machine& machine, std::uint16_t* bits, const Attention& attention, std::uint32_t sample,
                          std::int64_t head, std::int64_t first_query, std::int64_t first_key) {
  constexpr int kNumbers = kKeys / kKeptTogether;
  TRIAX_ROLLED
  for (int i = machine.thread(); i < kQueries * kNumbers; i += Size::kThreads) {
    const std::uint64_t first = score_element(attention.drop, attention.mask, head, first_query + i / kNumbers,
                                              first_key + i % kNumbers * kKeptTogether);
    bits[i] = static_cast<std::uint16_t>(kept_bits(attention.drop, sample, first));
  }
}

/// Four floats that are loaded together.
struct alignas(16) FourFloats {
  float at[4];
};
struct alignas(8) TwoFloats {
  float at[2];
};

/// out += a b^T: a has the warp's rows, and b's rows are the columns of out. a is multiplied by `sign`, 1 or -1.
template <class Size, class Machine>
TRIAX_STEP void add_product_of_rows(Machine& machine, Held<Size::kStrips, Size::kColumns>& out,
                                    const typename Size::T* a, const typename Size::T* b, float sign = 1) {
  using T = typename Size::T;
  const int lane = machine.lane();
  if constexpr (std::is_same_v<T, float>) {
    const float *rows = a + Size::at(lane / 4, 0), *columns = b + Size::at(lane % 4 * 2, 0);
    TRIAX_UNROLL_BY(2)
    for (int k = 0; k < Size::kWidth; k += 4) {
      FourFloats x[Size::kStrips][2];
      TRIAX_UNROLL
      for (int row = 0; row < 2 * Size::kStrips; ++row) {
        x[row / 2][row % 2] = *reinterpret_cast<const FourFloats*>(rows + Size::at(8 * row, k));
        TRIAX_UNROLL
        for (int i = 0; i < 4; ++i) x[row / 2][row % 2].at[i] *= sign;
      }
      TRIAX_UNROLL
      for (int n = 0; n < Size::kColumns / 8; ++n) {
        TRIAX_UNROLL
        for (int odd = 0; odd < 2; ++odd) {
          const auto y = *reinterpret_cast<const FourFloats*>(columns + Size::at(8 * n + odd, k));
          TRIAX_UNROLL
          for (int row = 0; row < 2 * Size::kStrips; ++row) {
            TRIAX_UNROLL
            for (int i = 0; i < 4; ++i) out[row / 2][n][row % 2 * 2 + odd] += x[row / 2][row % 2].at[i] * y.at[i];
          }
        }
      }
    }
  } else {
    const std::uint32_t flip = sign < 0 ? 0x80008000u : 0u; // flips the signs of both halves
    const T* rows = a + Size::at(lane % 16, lane / 16 * 8);
    const T* columns = b + Size::at(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8);
    TRIAX_UNROLL
    for (int k = 0; k < Size::kWidth; k += 16) {
      std::uint32_t x[Size::kStrips][4];
      TRIAX_UNROLL
      for (int strip = 0; strip < Size::kStrips; ++strip) {
        machine.load_matrices(x[strip], rows + Size::at(16 * strip, k));
        TRIAX_UNROLL
        for (int i = 0; i < 4; ++i) x[strip][i] ^= flip;
      }
      TRIAX_UNROLL
      for (int n = 0; n < Size::kColumns / 16; ++n) {
        std::uint32_t y[4];
        machine.load_matrices(y, columns + Size::at(16 * n, k));
        TRIAX_UNROLL
        for (int strip = 0; strip < Size::kStrips; ++strip) {
          machine.template multiply<T>(out[strip][2 * n], x[strip], y[0], y[1]);
          machine.template multiply<T>(out[strip][2 * n + 1], x[strip], y[2], y[3]);
        }
      }
    }
  }
}

/// out += a b: the warp holds a in registers, and b's rows are a's columns. Uses kPartWidth columns of b.
template <class Size, class Machine>
TRIAX_STEP void add_product_with_held(Machine& machine, Held<Size::kStrips, Size::kPartWidth>& out,
                                      const Held<Size::kStrips, Size::kColumns>& a, const typename Size::T* b) {
  using T = typename Size::T;
  const int lane = machine.lane();
  if constexpr (std::is_same_v<T, float>) {
    TRIAX_UNROLL
    for (int k = 0; k < Size::kColumns; ++k) { // held by lane k % 8 / 2 of the four lanes that share a row
      const int from = lane / 4 * 4 + k % 8 / 2;
      float x[2 * Size::kStrips];
      TRIAX_UNROLL
      for (int row = 0; row < 2 * Size::kStrips; ++row)
        x[row] = machine.from_lane(a[row / 2][k / 8][row % 2 * 2 + k % 2], from);
      TRIAX_UNROLL
      for (int n = 0; n < Size::kPartWidth / 8; ++n) {
        const auto y = *reinterpret_cast<const TwoFloats*>(b + Size::at(k, 8 * n + lane % 4 * 2));
        TRIAX_UNROLL
        for (int row = 0; row < 2 * Size::kStrips; ++row) {
          out[row / 2][n][row % 2 * 2] += x[row] * y.at[0];
          out[row / 2][n][row % 2 * 2 + 1] += x[row] * y.at[1];
        }
      }
    }
  } else {
    const T* rows = b + Size::at(lane % 16, lane / 16 * 8);
    TRIAX_UNROLL
    for (int k = 0; k < Size::kColumns / 16; ++k) { // two held tiles of 8 columns are one operand of 16
      std::uint32_t x[Size::kStrips][4];
      TRIAX_UNROLL
      for (int strip = 0; strip < Size::kStrips; ++strip) {
        TRIAX_UNROLL
        for (int half = 0; half < 4; ++half) {
          const float* two = a[strip][2 * k + half / 2] + half % 2 * 2;
          x[strip][half] = machine.template pack<T>(two[0], two[1]);
        }
      }
      TRIAX_UNROLL
      for (int n = 0; n < Size::kPartWidth / 16; ++n) {
        std::uint32_t y[4];
        machine.load_matrices_transposed(y, rows + Size::at(16 * k, 16 * n));
        TRIAX_UNROLL
        for (int strip = 0; strip < Size::kStrips; ++strip) {
          machine.template multiply<T>(out[strip][2 * n], x[strip], y[0], y[1]);
          machine.template multiply<T>(out[strip][2 * n + 1], x[strip], y[2], y[3]);
        }
      }
    }
  }
}

/// Writes the warp's rows, multiplied by their factors, to rows `first`... and columns `column`... of a head.
template <class Size, class Machine>
TRIAX_STEP void store(Machine& machine, const Held<Size::kStrips, Size::kPartWidth>& held,
                      const float (&factor)[Size::kStrips][2], typename Size::T* head, const HeadView& view,
                      std::int64_t first, std::int64_t end, int column, int width) {
  using T = typename Size::T;
  TRIAX_UNROLL
  for (int row = 0; row < 2 * Size::kStrips; ++row) {
    const std::int64_t place = first + 8 * row + machine.lane() / 4;
    if (place >= end) continue;
    T* to = head + place * view.row;
    TRIAX_UNROLL
    for (int n = 0; n < Size::kPartWidth / 8; ++n) {
      const int at = column + 8 * n + machine.lane() % 4 * 2;
      const float by = factor[row / 2][row % 2];
      const float one = held[row / 2][n][row % 2 * 2] * by, two = held[row / 2][n][row % 2 * 2 + 1] * by;
      if (view.pairs && at + 1 < width) {
        machine.template store_pair<T>(to + at, one, two);
      } else {
        if (at < width) machine.template store_one<T>(to + at, one);
        if (at + 1 < width) machine.template store_one<T>(to + at + 1, two);
      }
    }
  }
}

/// 16-bit types use exponentials to base 2, for which GPUs have an instruction; f32 uses base e. A score times this
/// factor is the exponent.
template <class T>
inline constexpr float kOfNaturalExponent = std::is_same_v<T, float> ? 1.0f : 1.4426950408889634f;
template <class T>
inline constexpr float kToNaturalExponent = std::is_same_v<T, float> ? 1.0f : 0.6931471805599453f;

} // namespace triax::kernels_fused
