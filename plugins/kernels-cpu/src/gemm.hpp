// Matrix products by oneDNN: one single-threaded sgemm per tile, tiles fixed by the shape.
//
// With more than one thread oneDNN may split K and so give other bits than with one; a tile is never split over K, so a
// product has the same bits for any number of threads. Threads: pure functions, any thread. Blocking: they compute.
// Ownership: none. Errors: Error with oneDNN's status.
#pragma once

#include <cstdint>

namespace triax::cpu {

struct Loops;

/// d = alpha * op(a) op(b) + beta * d; row-major; ld* are the distances between rows. d [m, n], K is k.
struct Product {
  float* d;
  const float *a, *b;
  std::int64_t ldd, lda, ldb;
  std::int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
};

/// How many tiles d is cut into, in each direction; as many along all of a side, of nearly equal sizes.
struct Tiles {
  std::int64_t rows, columns;
  std::int64_t count() const { return rows * columns; }
};
Tiles tiles_of(std::int64_t m, std::int64_t n, std::int64_t k);

/// Tile `index` of d as a product of its own; tiles of one row of tiles come one after another.
Product tile(const Product& product, const Tiles& tiles, std::int64_t index);

/// a and b copied next to each other, not transposed: where their rows lie far apart oneDNN takes up to twice as long.
/// The copies hold the same numbers, and whether there are any follows from the shape.
class Packing {
 public:
  /// Room that it takes; 0: the product is too small to be worth it, or has tiles so large that oneDNN packs them.
  static std::int64_t floats(const Product& product);
  Packing(const Product& product, float* scratch);

  /// Parts of the copying, in any order, from any thread; product() may be computed after all of them.
  std::int64_t blocks() const;
  void run(std::int64_t block, const Loops& loops) const;
  Product product() const;

 private:
  std::int64_t blocks_of_a() const;

  Product from_;
  float *a_, *b_;
};

/// In the calling thread.
void multiply(const Product& product);

} // namespace triax::cpu
