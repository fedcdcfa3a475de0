// SPDX-License-Identifier: Apache-2.0
// Transposed copy of a matrix.
#pragma once

#include <utility>

#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

/// In every square of 2 x step lanes, `above` keeps its left half and gets the left half of `below` as its right half;
/// `below` gets the two right halves.
template <int step, int... lane>
TRIAX_INLINE void exchange_halves(Float& above, Float& below, std::integer_sequence<int, lane...>) {
  const Float left = above, right = below;
  above = __builtin_shufflevector(left, right, ((lane & step) ? lane - step + kWidth : lane)...);
  below = __builtin_shufflevector(left, right, ((lane & step) ? lane + kWidth : lane + step)...);
}

/// Swaps the off-diagonal quarters of every square of 2 x step rows and lanes.
template <int step>
TRIAX_INLINE void exchange_quarters(Float (&row)[kWidth]) {
#pragma GCC unroll 16 // keeps the rows in registers
  for (int i = 0; i < kWidth; ++i) {
    if (!(i & step)) exchange_halves<step>(row[i], row[i + step], std::make_integer_sequence<int, kWidth>());
  }
}

/// Transposes the square of kWidth rows.
TRIAX_INLINE void transpose_rows(Float (&row)[kWidth]) {
#if defined(__AVX512F__)
  exchange_quarters<8>(row);
#endif
#if defined(__AVX2__)
  exchange_quarters<4>(row);
#endif
  exchange_quarters<2>(row);
  exchange_quarters<1>(row);
}

TRIAX_INLINE void transpose_square(float* to, std::int64_t to_stride, const float* from, std::int64_t from_stride) {
  Float row[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) row[i] = load(from + i * from_stride, Full{0});
  transpose_rows(row);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) store(to + i * to_stride, Full{0}, row[i]);
}

void transpose(float* to, std::int64_t to_stride, const float* from, std::int64_t from_stride, std::int64_t rows,
               std::int64_t columns) {
  const std::int64_t whole_rows = rows / kWidth * kWidth, whole_columns = columns / kWidth * kWidth;
  for (std::int64_t j = 0; j < whole_columns; j += kWidth) {
    for (std::int64_t i = 0; i < whole_rows; i += kWidth)
      transpose_square(to + i * to_stride + j, to_stride, from + j * from_stride + i, from_stride);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      to[i * to_stride + j] = from[j * from_stride + i];
  }
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
