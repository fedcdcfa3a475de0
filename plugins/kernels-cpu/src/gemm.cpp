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

// Where a product is worth sharing, and how large a tile may be: it reuses each packed row some 200 times, and a few
// dozen tiles are enough for any number of threads.
constexpr std::int64_t kShared = 128 * 128 * 16; // multiply-adds
constexpr std::int64_t kLargestTile = 256 * 256; // elements of d
constexpr std::int64_t kRows = 16,
                       kColumns = 48; // multiples of what oneDNN's kernels for AVX2 and AVX-512 compute at once

std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

/// Length of a piece when `length` is cut into `pieces`, rounded up to `step`.
std::int64_t piece(std::int64_t length, std::int64_t pieces, std::int64_t step) {
  return std::max<std::int64_t>(std::min(length, divide_up(divide_up(length, pieces), step) * step), 1);
}

} // namespace

/// Halves the longer side until there are four tiles and none is too large.
Tiles tiles_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::int64_t row_cuts = 1, column_cuts = 1;
  if (m * n * k >= kShared) {
    for (;;) {
      const std::int64_t rows = divide_up(m, row_cuts), columns = divide_up(n, column_cuts);
      if (row_cuts * column_cuts >= 4 && rows * columns <= kLargestTile) break;
      const bool rows_can = rows >= 2 * kRows, columns_can = columns >= 2 * kColumns;
      if (rows_can && (rows >= columns || !columns_can)) {
        row_cuts *= 2;
      } else if (columns_can) {
        column_cuts *= 2;
      } else {
        break;
      }
    }
  }
  Tiles tiles{piece(m, row_cuts, kRows), piece(n, column_cuts, kColumns), 0, 0};
  tiles.row_tiles = divide_up(m, tiles.rows);
  tiles.column_tiles = divide_up(n, tiles.columns);
  return tiles;
}

Product tile(const Product& product, const Tiles& tiles, std::int64_t index) {
  const std::int64_t row = index / tiles.column_tiles * tiles.rows, column = index % tiles.column_tiles * tiles.columns;
  Product part = product;
  part.m = std::min(tiles.rows, product.m - row);
  part.n = std::min(tiles.columns, product.n - column);
  part.d += row * product.ldd + column;
  part.a += product.transpose_a ? row : row * product.lda;
  part.b += product.transpose_b ? column * product.ldb : column;
  return part;
}

void multiply(const Product& p) {
  const OneThread one;
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha,
                                          p.a, p.lda, p.b, p.ldb, p.beta, p.d, p.ldd);
  if (status != dnnl_success) {
    throw Error(text("oneDNN refuses an sgemm of {} x {} x {} with row lengths {}, {}, {}: status {}", p.m, p.n, p.k,
                     p.lda, p.ldb, p.ldd, static_cast<int>(status)));
  }
}

} // namespace triax::cpu
