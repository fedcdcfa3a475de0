#include "gemm.hpp"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>

#include "triax/error.hpp"

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "kernels-cpu needs a oneDNN with OpenMP or without threads, which can be told to compute in the calling thread"
#endif

namespace triax::cpu {

namespace {

/// oneDNN asks OpenMP how many threads it may use. The number belongs to the calling thread, and is given back to it.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

// Where a product is worth sharing, and how large a tile may be: a few dozen tiles are enough for any number of
// threads.
constexpr std::int64_t kShared = 128 * 128 * 16;   // multiply-adds
constexpr std::int64_t kLargestTile = 1024 * 1024; // elements of d
constexpr std::int64_t kLargestPlain = 256 * 256;
constexpr std::int64_t kRows = 16,
                       kColumns = 48; // multiples of what oneDNN's kernels for AVX2 and AVX-512 compute at once

/// Whether oneDNN copies the parts of a and b that it works on to where its kernel likes them, which it does when
/// 1/m + 1/n < 0.0038 (FORCE_NOCOPY_THRESH of its gemm_driver.cpp). Without that, a long distance between rows costs
/// half the speed. A little stricter here, since tiles are rounded.
bool packs(std::int64_t m, std::int64_t n) {
  return 1.0 / static_cast<double>(m) + 1.0 / static_cast<double>(n) < 0.0036;
}

/// Where piece `index` of `length` begins: at multiples of `step`, so that no kernel computes a remainder within.
std::int64_t edge(std::int64_t length, std::int64_t pieces, std::int64_t index, std::int64_t step) {
  if (index == pieces) return length;
  return (length * index / pieces + step / 2) / step * step;
}

/// d = beta * d, where 0 * NaN is 0.
void scale_rows(const Product& p) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      float& d = p.d[i * p.ldd + j];
      d = p.beta == 0 ? 0 : p.beta * d;
    }
  }
}

} // namespace

namespace {

/// Halves the longer side, while halves are allowed, until there are four tiles and none is larger than `largest`.
template <class Allowed>
Tiles halved(std::int64_t m, std::int64_t n, std::int64_t largest, const Allowed& allowed) {
  Tiles tiles{1, 1};
  for (;;) {
    const std::int64_t rows = m / tiles.rows, columns = n / tiles.columns;
    if (tiles.count() >= 4 && rows * columns <= largest) return tiles;
    const bool rows_can = allowed(rows / 2, columns), columns_can = allowed(rows, columns / 2);
    if (rows_can && (rows >= columns || !columns_can)) {
      tiles.rows *= 2;
    } else if (columns_can) {
      tiles.columns *= 2;
    } else {
      return tiles;
    }
  }
}

} // namespace

/// Four or more tiles that oneDNN packs, where the product has room for them; else small ones.
Tiles tiles_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Tiles whole{m > 0 ? 1 : 0, n > 0 ? 1 : 0};
  if (whole.count() == 0 || m * n * k < kShared) return whole;
  const Tiles large = halved(m, n, kLargestTile, packs);
  if (large.count() >= 4) return large;
  return halved(m, n, kLargestPlain,
                [](std::int64_t rows, std::int64_t columns) { return rows >= kRows && columns >= kColumns; });
}

Product tile(const Product& product, const Tiles& tiles, std::int64_t index) {
  const std::int64_t i = index / tiles.columns, j = index % tiles.columns;
  const std::int64_t row = edge(product.m, tiles.rows, i, kRows), column = edge(product.n, tiles.columns, j, kColumns);
  Product part = product;
  part.m = edge(product.m, tiles.rows, i + 1, kRows) - row;
  part.n = edge(product.n, tiles.columns, j + 1, kColumns) - column;
  part.d += row * product.ldd + column;
  part.a += product.transpose_a ? row : row * product.lda;
  part.b += product.transpose_b ? column * product.ldb : column;
  return part;
}

void multiply(const Product& p) {
  if (p.k == 0) return scale_rows(p); // oneDNN leaves d as it is
  const OneThread one;
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha,
                                          p.a, p.lda, p.b, p.ldb, p.beta, p.d, p.ldd);
  if (status != dnnl_success) {
    throw Error(text("oneDNN refuses an sgemm of {} x {} x {} with row lengths {}, {}, {}: status {}", p.m, p.n, p.k,
                     p.lda, p.ldb, p.ldd, static_cast<int>(status)));
  }
}

} // namespace triax::cpu
