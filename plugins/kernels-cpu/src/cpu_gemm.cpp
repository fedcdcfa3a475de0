// SPDX-License-Identifier: Apache-2.0
#include "cpu_gemm.hpp"

#include <dnnl.h>

#include <algorithm>

#include "loops.hpp"
#include "openmp.hpp"
#include "triax/error.hpp"

#if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
#error "kernels-cpu needs a oneDNN with OpenMP or without threads, which can compute in the calling thread"
#endif

namespace triax::kernels_cpu {

namespace {

/// oneDNN uses OpenMP's maximum number of threads. This sets it to 1 for the calling thread, and restores it.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

// From which size a product is split, and the largest tile; a few dozen tiles suffice for any number of threads.
constexpr std::int64_t kShared = 128 * 128 * 16; // multiply-adds
constexpr std::int64_t kMaxTile = 384 * 384;     // elements of d
constexpr std::int64_t kMaxPackedByLibrary = 1024 * 1024;
constexpr std::int64_t kRowStep = 16,
                       kColumnStep = 48; // multiples of the block sizes of oneDNN's AVX2 and AVX-512 kernels

constexpr std::int64_t kRowTile = 64 * 1024; // elements of b in a tile of a product of one row
constexpr std::int64_t kMaxRowTiles = 64;

// Packing pays only if each packed element is used often.
constexpr std::int64_t kWorthPacking = 128;                // rows and columns of d
constexpr std::int64_t kMaxPacked = std::int64_t{1} << 24; // floats; limits the scratch size
// Floats between packed rows: rows of 2^n floats without a gap would map to the same few sets of the L1 cache.
constexpr std::int64_t kGap = 16;
constexpr std::int64_t kPackedRows = 64; // rows per block of the copy

/// Start of piece `index` of `length`: a multiple of `step`, so that no piece but the last computes a remainder, or
/// the end. Pieces may be empty.
std::int64_t edge(std::int64_t length, std::int64_t pieces, std::int64_t index, std::int64_t step) {
  if (index == pieces) return length;
  return std::min(length, (length * index / pieces + step / 2) / step * step);
}

/// True if oneDNN packs a tile itself, which it does if 1/m + 1/n < 0.0038 (FORCE_NOCOPY_THRESH of its
/// gemm_driver.cpp). The limit here is slightly stricter, because tile sizes are rounded.
bool library_packs(std::int64_t m, std::int64_t n) {
  return 1.0 / static_cast<double>(m) + 1.0 / static_cast<double>(n) < 0.0036;
}

bool any_tile(std::int64_t m, std::int64_t n) {
  return m >= kRowStep && n >= kColumnStep;
}

/// Halves the longer side while `allowed` permits, until there are at least four tiles, each at most `largest`.
Tiles halved(std::int64_t m, std::int64_t n, std::int64_t largest, bool (*allowed)(std::int64_t, std::int64_t)) {
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

/// At least four tiles that oneDNN packs; fewer if the product is too small for that.
Tiles large_tiles(std::int64_t m, std::int64_t n) {
  return halved(m, n, kMaxPackedByLibrary, library_packs);
}

bool is_packed(std::int64_t m, std::int64_t n, std::int64_t k) {
  return m >= kWorthPacking && n >= kWorthPacking && m * n * k >= kShared && large_tiles(m, n).count() < 4 &&
         m * (k + kGap) + k * (n + kGap) <= kMaxPacked;
}

/// Copies rows [begin, begin + rows) of a matrix of n columns, which is stored as is or transposed.
void pack(const Loops& loops, float* to, std::int64_t stride, const float* from, std::int64_t from_stride,
          std::int64_t begin, std::int64_t rows, std::int64_t n, bool transposed) {
  to += begin * stride;
  if (transposed) return loops.transpose(to, stride, from + begin, from_stride, rows, n);
  for (std::int64_t i = 0; i < rows; ++i) std::copy_n(from + (begin + i) * from_stride, n, to + i * stride);
}

/// d = beta * d; with beta = 0, NaN becomes 0.
void scale_rows(const Product& p) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      float& d = p.d[i * p.ldd + j];
      d = p.beta == 0 ? 0 : p.beta * d;
    }
  }
}

} // namespace

Tiles tiles_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  const Tiles whole{m > 0 ? 1 : 0, n > 0 ? 1 : 0};
  if (whole.count() == 0 || m * n * k < kShared) return whole;
  const Tiles large = large_tiles(m, n);
  return large.count() >= 4 ? large : halved(m, n, kMaxTile, any_tile);
}

bool is_row_product(const Product& product) {
  return product.m == 1 && product.transpose_b && !product.transpose_a;
}

bool is_packed_by_library(const Product& product) {
  return large_tiles(product.m, product.n).count() >= 4;
}

Tiles tiles_of(const Product& product) {
  if (!is_row_product(product) || product.n == 0) return tiles_of(product.m, product.n, product.k);
  const std::int64_t most = std::min(kMaxRowTiles, (product.n + kColumnStep - 1) / kColumnStep);
  return {1, std::clamp<std::int64_t>(product.n * product.k / kRowTile, 1, most)};
}

Product tile(const Product& product, const Tiles& tiles, std::int64_t index) {
  const std::int64_t i = index / tiles.columns, j = index % tiles.columns;
  const std::int64_t row = edge(product.m, tiles.rows, i, kRowStep),
                     column = edge(product.n, tiles.columns, j, kColumnStep);
  Product part = product;
  part.m = edge(product.m, tiles.rows, i + 1, kRowStep) - row;
  part.n = edge(product.n, tiles.columns, j + 1, kColumnStep) - column;
  part.d += row * product.ldd + column;
  part.a += product.transpose_a ? row : row * product.lda;
  part.b += product.transpose_b ? column * product.ldb : column;
  return part;
}

std::int64_t Packing::floats(const Product& p) {
  return is_packed(p.m, p.n, p.k) ? p.m * (p.k + kGap) + p.k * (p.n + kGap) : 0;
}

Packing::Packing(const Product& product, float* scratch)
    : from_(product), a_(scratch), b_(scratch + product.m * (product.k + kGap)) {}

std::int64_t Packing::blocks() const {
  return blocks_of_a() + (from_.k + kPackedRows - 1) / kPackedRows;
}
std::int64_t Packing::blocks_of_a() const {
  return (from_.m + kPackedRows - 1) / kPackedRows;
}

void Packing::run(std::int64_t block, const Loops& loops) const {
  const std::int64_t of_a = blocks_of_a(), begin = (block < of_a ? block : block - of_a) * kPackedRows;
  const auto rows = [&](std::int64_t all) { return std::min(kPackedRows, all - begin); };
  if (block < of_a) {
    pack(loops, a_, from_.k + kGap, from_.a, from_.lda, begin, rows(from_.m), from_.k, from_.transpose_a);
  } else {
    pack(loops, b_, from_.n + kGap, from_.b, from_.ldb, begin, rows(from_.k), from_.n, from_.transpose_b);
  }
}

Product Packing::product() const {
  Product packed = from_;
  packed.a = a_;
  packed.b = b_;
  packed.lda = from_.k + kGap;
  packed.ldb = from_.n + kGap;
  packed.transpose_a = packed.transpose_b = false;
  return packed;
}

void multiply(const Product& p) {
  if (p.k == 0) return scale_rows(p); // oneDNN would leave d unchanged
  const OneThread one;
  const dnnl_status_t status = dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', p.m, p.n, p.k, p.alpha,
                                          p.a, p.lda, p.b, p.ldb, p.beta, p.d, p.ldd);
  if (status != dnnl_success) {
    throw Error(text("oneDNN refuses an sgemm of {} x {} x {} with row lengths {}, {}, {}: status {}", p.m, p.n, p.k,
                     p.lda, p.ldb, p.ldd, static_cast<int>(status)));
  }
}

void multiply(const Product& p, const Loops& loops) {
  if (!is_row_product(p)) return multiply(p);
  loops.multiply_row(p.d, p.a, p.b, p.ldb, p.n, p.k, p.alpha, p.beta);
}

} // namespace triax::kernels_cpu
