// SPDX-License-Identifier: Apache-2.0
// Matrix products by the loops of the instruction set (loops/product_loops.hpp), in tiles whose operands are packed
// into the caches.
//
// The inner dimension is cut into blocks that depend on its length alone, and an element of d is the sum of its blocks
// in order. So the tiles, which depend on the number of threads, do not change its bits.
// Threads: any; pure functions, one scratch per thread. Ownership: memory is the caller's.
#pragma once

#include "cpu_gemm.hpp"
#include "loops.hpp"

namespace triax::kernels_cpu {

/// The tiles of products of one shape.
class PackedTiles {
 public:
  /// Whether the loops compute this product. oneDNN computes products of few rows or columns, which use a packed
  /// element too rarely, large ones whose a is not transposed, and those of an instruction set without the loops.
  static bool serves(const Product& product, const Loops& loops);

  /// `threads` is the number of threads that share the tiles of one product.
  PackedTiles(const Product& product, const Loops& loops, int threads);

  /// Floats of scratch that each thread needs.
  std::int64_t scratch_floats() const;
  /// Tiles can run in any order on any thread.
  std::int64_t count() const { return row_tiles_ * column_tiles_; }
  void run(std::int64_t tile, const Product& product, float* scratch, const Epilogue& epilogue) const;

 private:
  const ProductLoops& loops_;
  std::int64_t m_, n_;
  std::int64_t row_tiles_ = 1, column_tiles_ = 1;
  std::int64_t block_k_; // elements of the inner dimension in a block
};

} // namespace triax::kernels_cpu
