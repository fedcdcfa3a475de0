// SPDX-License-Identifier: Apache-2.0
// Matrix products of packed operands: a micro tile of d is in registers while the inner dimension passes.
//
// For each element of the inner dimension, a micro-kernel loads a row of a panel of b, and multiplies it with every
// value of the panel of a. The tile is as large as the registers allow, so that multiply-adds, not loads, limit the
// speed: 28 of the 32 registers of AVX-512. Other instruction sets leave products to oneDNN (docs/adr/0035). (Goto and
// van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008; Van Zee and van de Geijn,
// "BLIS", ACM TOMS 41(3), 2015.)
#pragma once

#include <utility>

#include "loops.hpp"
#include "loops/elementwise.hpp"
#include "loops/transpose.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

void finish(const Epilogue& epilogue, float* d, std::int64_t ldd, std::int64_t row, std::int64_t column,
            std::int64_t rows, std::int64_t columns) {
  const float* bias = epilogue.bias ? epilogue.bias + column : nullptr;
  for (std::int64_t r = row; r < row + rows; ++r) {
    const std::int64_t at = r * ldd + column;
    if (epilogue.gelu) {
      bias_gelu(epilogue.gelu + at, d + at, bias, columns);
    } else if (bias) {
      add(d + at, d + at, bias, columns);
    }
    if (epilogue.gelu_bwd) gelu_bwd(d + at, d + at, epilogue.gelu_bwd + at, columns);
  }
}

#if defined(__AVX512F__)

constexpr int kTileRows = 14, kMaxColumns = 768; // 1.2 MB of b for an L2 cache of 2 MiB
constexpr int kGroupRows = 4 * kTileRows;        // of a that are packed at once
constexpr int kTileVectors = 2, kTileColumns = kTileVectors * kWidth;

TRIAX_INLINE Float broadcast(const float* p) {
  return _mm512_set1_ps(*p);
}

/// Calls body(position) for the vectors of n elements; n is a constant.
template <int n, class Body>
TRIAX_INLINE void each_of(const Body& body) {
  constexpr int kWhole = n / kWidth * kWidth;
#pragma GCC unroll 2
  for (int i = 0; i < kWhole; i += kWidth) body(Full{i});
  if constexpr (kWhole < n) body(Part{kWhole, n - kWhole});
}

constexpr int kLine = 16;          // floats of a cache line
constexpr std::int64_t kAhead = 8; // rows that are prefetched before their use

/// Packs a matrix whose rows are along the panels: k rows of `count` columns.
template <int kPanel>
void pack_along(float* to, const float* from, std::int64_t stride, std::int64_t count, std::int64_t k) {
  const std::int64_t whole = count / kPanel * kPanel;
  for (std::int64_t l = 0; l < k; ++l) {
    const float* row = from + l * stride;
    for (std::int64_t begin = 0; begin < whole; begin += kPanel) {
      float* panel = to + begin * k + l * kPanel;
      each_of<kPanel>([&](auto at) {
        store(panel, at, load(row + begin, at));
        __builtin_prefetch(row + kAhead * stride + begin + at.i);
      });
    }
    if (whole == count) continue;
    float* panel = to + whole * k + l * kPanel;
    each_of<kPanel>([&](auto at) { store(panel, at, Float{}); });
    each(count - whole, [&](auto at) { store(panel, at, load(row + whole, at)); });
  }
}

/// Packs up to kWidth of a panel's rows, from its row `first` on; `rows` counts from there, and may be kWidth or more.
template <int kPanel, int first>
TRIAX_INLINE void pack_square_rows(float* to, const float* from, std::int64_t stride, std::int64_t rows,
                                   std::int64_t k) {
  constexpr int kRows = kPanel - first < kWidth ? kPanel - first : kWidth;
  const auto square = [&](std::int64_t l, auto at, int columns) {
    Float row[kWidth] = {};
    if (rows >= kRows) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        row[i] = load(from + i * stride + l, at);
        __builtin_prefetch(from + (i + kPanel) * stride + l);
      }
    } else {
      for (int i = 0; i < rows; ++i) row[i] = load(from + i * stride + l, at);
    }
    transpose_rows(row);
#pragma GCC unroll 16
    for (int j = 0; j < kWidth; ++j) {
      if (j < columns) each_of<kRows>([&](auto lanes) { store(to + (l + j) * kPanel + first, lanes, row[j]); });
    }
  };
  std::int64_t l = 0;
  for (; l + kWidth <= k; l += kWidth) square(l, Full{0}, kWidth);
  if (l < k) square(l, Part{0, static_cast<int>(k - l)}, static_cast<int>(k - l));
}

/// Packs a matrix whose rows are across the panels: `count` rows of k columns.
template <int kPanel>
void pack_across(float* to, const float* from, std::int64_t stride, std::int64_t count, std::int64_t k) {
  for (std::int64_t begin = 0; begin < count; begin += kPanel) {
    float* panel = to + begin * k;
    const float* row = from + begin * stride;
    pack_square_rows<kPanel, 0>(panel, row, stride, count - begin, k);
    if constexpr (kPanel > kWidth)
      pack_square_rows<kPanel, kWidth>(panel, row + kWidth * stride, stride, count - begin - kWidth, k);
  }
}

void pack_product(float* to, const float* b, std::int64_t stride, std::int64_t columns, std::int64_t k,
                  bool transposed) {
  transposed ? pack_across<kTileColumns>(to, b, stride, columns, k)
             : pack_along<kTileColumns>(to, b, stride, columns, k);
}

struct MicroTile {
  const float *a, *b;
  std::int64_t k;
  float* d;
  std::int64_t ldd, columns;
  float alpha, beta;
};

/// The edge of d: fewer columns than a tile has.
void write_columns(const MicroTile& tile, std::int64_t rows, const float* sums) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* d = tile.d + r * tile.ldd;
    each(tile.columns, [&](auto at) {
      const Float sum = load(sums + r * kTileColumns, at) * tile.alpha;
      store(d, at, tile.beta == 0 ? sum : fma(splat(tile.beta), load(d, at), sum));
    });
  }
}

template <int kRows>
TRIAX_INLINE void write(const MicroTile& tile, Float (&sums)[kRows][kTileVectors]) {
  const Float alpha = splat(tile.alpha), beta = splat(tile.beta);
  const auto each_vector = [&](const auto& body) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) body(tile.d + r * tile.ldd, Full{v * kWidth}, alpha * sums[r][v]);
    }
  };
  if (tile.columns < kTileColumns) {
    float copy[kRows * kTileColumns];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) store(copy + r * kTileColumns, Full{v * kWidth}, sums[r][v]);
    }
    write_columns(tile, kRows, copy);
  } else if (tile.beta == 0) {
    each_vector([&](float* d, Full at, Float sum) { store(d, at, sum); });
  } else {
    each_vector([&](float* d, Full at, Float sum) { store(d, at, fma(beta, load(d, at), sum)); });
  }
}

/// The first kRows rows of a micro tile. Each sum has one chain of multiply-adds, whatever the number of rows.
template <int kRows>
void multiply_tile(const MicroTile& tile) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    __builtin_prefetch(tile.d + r * tile.ldd, 1);
    __builtin_prefetch(tile.d + r * tile.ldd + kTileColumns - 1, 1);
  }
  Float sums[kRows][kTileVectors] = {};
  const float *a = tile.a, *b = tile.b;
  for (std::int64_t l = 0; l < tile.k; ++l, a += kTileRows, b += kTileColumns) {
    Float row[kTileVectors];
#pragma GCC unroll 2
    for (int line = 0; line < kTileColumns; line += kLine) __builtin_prefetch(b + kAhead * kTileColumns + line);
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) row[v] = load(b, Full{v * kWidth});
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      Float value = broadcast(a + r);
      asm("" : "+v"(value)); // one load, instead of one in each multiply-add
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) sums[r][v] = fma(value, row[v], sums[r][v]);
    }
  }
  write<kRows>(tile, sums);
}

/// The micro-kernel for each number of rows.
struct MicroKernels {
  void (*of_rows[kTileRows + 1])(const MicroTile& tile);
};
template <int... index>
constexpr MicroKernels micro_kernels(std::integer_sequence<int, index...>) {
  return {{nullptr, multiply_tile<index + 1>...}};
}
constexpr MicroKernels kMicroKernels = micro_kernels(std::make_integer_sequence<int, kTileRows>());

/// Prefetches the part `index` of `parts` of `rows` rows of a, so that packing them does not wait for memory.
void prefetch_rows(const ProductBlock& block, const float* a, std::int64_t rows, std::int64_t index,
                   std::int64_t parts) {
  const std::int64_t begin = block.k * index / parts, end = block.k * (index + 1) / parts;
  if (block.transpose_a) {
    for (std::int64_t l = begin; l < end; ++l) {
      for (std::int64_t r = 0; r < rows; r += kLine) __builtin_prefetch(a + l * block.lda + r, 0, 2);
    }
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t l = begin; l < end; l += kLine) __builtin_prefetch(a + r * block.lda + l, 0, 2);
  }
}

TRIAX_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

void multiply_block(const ProductBlock& block) {
  const std::int64_t row_step = block.transpose_a ? 1 : block.lda;
  for (std::int64_t group = 0; group < block.rows; group += kGroupRows) {
    const std::int64_t end = smaller(block.rows, group + kGroupRows), next_end = smaller(block.rows, end + kGroupRows);
    const float* a = block.a + group * row_step;
    block.transpose_a ? pack_along<kTileRows>(block.panels, a, block.lda, end - group, block.k)
                      : pack_across<kTileRows>(block.panels, a, block.lda, end - group, block.k);
    const std::int64_t tiles =
        (end - group + kTileRows - 1) / kTileRows * ((block.columns + kTileColumns - 1) / kTileColumns);
    std::int64_t tile = 0;
    for (std::int64_t i = group; i < end; i += kTileRows) {
      for (std::int64_t j = 0; j < block.columns; j += kTileColumns, ++tile) {
        const std::int64_t rows = smaller(kTileRows, end - i), columns = smaller(kTileColumns, block.columns - j);
        const std::int64_t row = block.row + i, column = block.column + j;
        prefetch_rows(block, block.a + end * row_step, next_end - end, tile, tiles);
        kMicroKernels.of_rows[rows]({block.panels + (i - group) * block.k, block.b + j * block.k, block.k,
                                     block.d + row * block.ldd + column, block.ldd, columns, block.alpha, block.beta});
        if (block.epilogue) finish(*block.epilogue, block.d, block.ldd, row, column, rows, columns);
      }
    }
  }
}

constexpr ProductLoops kProductLoops{.rows = kTileRows,
                                     .columns = kTileColumns,
                                     .group_rows = kGroupRows,
                                     .max_columns = kMaxColumns,
                                     .pack = pack_product,
                                     .multiply = multiply_block};

#else

constexpr ProductLoops kProductLoops{};

#endif

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
