// SPDX-License-Identifier: Apache-2.0
#include "packed_product.hpp"

#include <algorithm>
#include <limits>

namespace triax::kernels_cpu {

namespace {

constexpr std::int64_t kMinSide = 128;   // rows and columns of d
constexpr std::int64_t kMaxBlockK = 384; // a panel of a stays in the L1 cache
constexpr std::int64_t kMaxRows = 2048;  // of a tile
// Multiply-adds of a tile: transports are polled between tiles. A tile has at least one row of micro tiles.
constexpr std::int64_t kMaxWork = kMaxRows * 768 * 768;
constexpr std::int64_t kPackingCost = 16; // multiply-adds that take as long as packing an element

struct Piece {
  std::int64_t begin, count;
};

constexpr std::int64_t divided_up(std::int64_t x, std::int64_t by) {
  return (x + by - 1) / by;
}

/// Elements of the inner dimension in each block but the last.
constexpr std::int64_t block_of(std::int64_t k) {
  return divided_up(divided_up(k, divided_up(k, kMaxBlockK)), 8) * 8;
}

/// Piece `index` of `length`, which is cut at multiples of `unit` into nearly equal pieces.
Piece piece(std::int64_t length, std::int64_t unit, std::int64_t pieces, std::int64_t index) {
  const std::int64_t units = divided_up(length, unit);
  const std::int64_t begin = units * index / pieces * unit, end = units * (index + 1) / pieces * unit;
  return {begin, std::min(end, length) - begin};
}

/// The longest of them.
std::int64_t longest(std::int64_t length, std::int64_t unit, std::int64_t pieces) {
  return divided_up(divided_up(length, unit), pieces) * unit;
}

} // namespace

bool PackedTiles::serves(const Product& product, const Loops& loops) {
  if (loops.product.rows == 0 || product.m < kMinSide || product.n < kMinSide || product.k == 0) return false;
  return product.transpose_a || !is_packed_by_library(product);
}

PackedTiles::PackedTiles(const Product& product, const Loops& loops, int threads)
    : loops_(loops.product), m_(product.m), n_(product.n), block_k_(block_of(product.k)) {
  const std::int64_t of_work = kMaxWork / (std::min<std::int64_t>(n_, loops_.max_columns) * product.k);
  const std::int64_t tile_rows = std::clamp<std::int64_t>(of_work / loops_.rows * loops_.rows, loops_.rows, kMaxRows);
  const std::int64_t rows = divided_up(m_, tile_rows), columns = divided_up(n_, loops_.max_columns);
  const std::int64_t max_rows = std::min(divided_up(m_, loops_.rows), rows + 2 * threads);
  const std::int64_t max_columns = divided_up(n_, loops_.columns);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t r = rows; r <= max_rows; ++r) {
    for (std::int64_t c = columns; c <= std::min(max_columns, columns + 2 * threads / r); ++c) {
      const std::int64_t m = longest(m_, loops_.rows, r), n = longest(n_, loops_.columns, c);
      const std::int64_t cost = divided_up(r * c, threads) * (m * n + kPackingCost * (m + n));
      if (cost >= least) continue;
      least = cost;
      row_tiles_ = r;
      column_tiles_ = c;
    }
  }
}

std::int64_t PackedTiles::scratch_floats() const {
  return (longest(n_, loops_.columns, column_tiles_) + loops_.group_rows) * block_k_;
}

void PackedTiles::run(std::int64_t tile, const Product& p, float* scratch, const Epilogue& epilogue) const {
  const Piece rows = piece(m_, loops_.rows, row_tiles_, tile / column_tiles_);
  const Piece columns = piece(n_, loops_.columns, column_tiles_, tile % column_tiles_);
  float* panels = scratch + longest(n_, loops_.columns, column_tiles_) * block_k_;
  for (std::int64_t l = 0; l < p.k; l += block_k_) {
    const std::int64_t k = std::min(block_k_, p.k - l);
    loops_.pack(scratch, p.b + (p.transpose_b ? columns.begin * p.ldb + l : l * p.ldb + columns.begin), p.ldb,
                columns.count, k, p.transpose_b);
    loops_.multiply({.d = p.d,
                     .a = p.a + (p.transpose_a ? l * p.lda + rows.begin : rows.begin * p.lda + l),
                     .b = scratch,
                     .panels = panels,
                     .ldd = p.ldd,
                     .lda = p.lda,
                     .row = rows.begin,
                     .column = columns.begin,
                     .rows = rows.count,
                     .columns = columns.count,
                     .k = k,
                     .transpose_a = p.transpose_a,
                     .alpha = p.alpha,
                     .beta = l == 0 ? p.beta : 1,
                     .epilogue = l + k == p.k ? &epilogue : nullptr});
  }
}

} // namespace triax::kernels_cpu
