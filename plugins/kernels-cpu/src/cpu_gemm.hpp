// SPDX-License-Identifier: Apache-2.0
// Matrix products by oneDNN: one single-threaded sgemm per tile; the shape determines the tiles. What the
// loops of the instruction set compute is in packed_product.hpp.
//
// With several threads oneDNN may split K, which changes the bits. Tiles never split K, so a product has the same bits
// for any number of threads. Threads: any; pure functions. Errors: Error with oneDNN's status.
#pragma once

#include <cstdint>

namespace triax::kernels_cpu {

struct Loops;

/// d = alpha * op(a) op(b) + beta * d, row-major. d is [m, n]; k is the inner dimension; ld* are the row strides.
struct Product {
  float* d;
  const float *a, *b;
  std::int64_t ldd, lda, ldb;
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
};

/// Number of tile rows and tile columns of d. Tiles along one side have nearly equal sizes.
struct Tiles {
  std::int64_t rows, columns;
  std::int64_t count() const { return rows * columns; }
};
Tiles tiles_of(std::int64_t m, std::int64_t n, std::int64_t k);
Tiles tiles_of(const Product& product);

/// Tile `index` of d as a product; tiles are numbered row by row.
Product tile(const Product& product, const Tiles& tiles, std::int64_t index);

/// Contiguous, untransposed copies of a and b. If rows are far apart in memory, oneDNN without them takes up to twice
/// as long. The copies hold the same values, and the shape alone decides whether to copy.
class Packing {
 public:
  /// Floats of scratch needed; 0 if the product is too small, or so large that oneDNN itself packs its tiles.
  static std::int64_t floats(const Product& product);
  Packing(const Product& product, float* scratch);

  /// Blocks of the copy can run in any order on any thread. Use product() only after all of them.
  std::int64_t blocks() const;
  void run(std::int64_t block, const Loops& loops) const;
  Product product() const;

 private:
  std::int64_t blocks_of_a() const;

  Product from_;
  float *a_, *b_;
};

/// Whether the product is that of a row with the rows of b, as when one token is generated: memory limits its speed, so
/// it is not left to oneDNN, and its tiles are smaller.
bool is_row_product(const Product& product);

/// Whether d has four tiles that are so large that oneDNN packs their operands.
bool is_packed_by_library(const Product& product);

/// Computes in the calling thread.
void multiply(const Product& product);
void multiply(const Product& product, const Loops& loops);

} // namespace triax::kernels_cpu
