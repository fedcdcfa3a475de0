// SPDX-License-Identifier: Apache-2.0
// The loops of the kernel set, compiled for several instruction sets. The best one is selected once, at the start.
//
// Threads: any; pure functions over the caller's memory.
// Every element goes through the same vector operations, in the middle of a row or in its tail, so its bits depend on
// its value only. Sums of a row have a fixed order that starts at its first element. Instruction sets may differ in
// their bits. NaN and infinity propagate.
#pragma once

#include <cstdint>

namespace triax::kernels_cpu {

/// Position of a row in the stream of random words (see Drop in triax/kernel_ops.hpp).
struct DropRow {
  std::uint32_t key_lo, key_hi, site, sample;
  std::uint64_t element; // global index of the row's first element
  std::uint32_t threshold;
  float scale; // 1 / (1 - p)
};

struct AdamWStep {
  // rest1 and rest2 are 1 - beta, rounded once: in fp32, 1 - 0.999999f is 1.3 % too large.
  float lr, clip, beta1, beta2, rest1, rest2, inverse_correction1, inverse_correction2, eps, decay;
};
struct SgdStep {
  float lr, clip, momentum, decay;
  bool first; // the velocity is not yet initialised
};

/// Conversions between a 16-bit type, as bits, and fp32.
struct HalfLoops {
  void (*widen)(float* to, const std::uint16_t* from, std::int64_t n);
  void (*narrow)(std::uint16_t* to, const float* from, std::int64_t n);
};

/// The operations after a product, for the elements of d that are in the cache. Null: not applied. The strides are
/// those of d.
struct Epilogue {
  const float* bias = nullptr;     // d += bias, one value per column
  float* gelu = nullptr;           // gelu = gelu(d)
  const float* gelu_bwd = nullptr; // d *= gelu'(gelu_bwd)
};

/// Part of a product d = alpha * a b + beta * d: `rows` rows and `columns` columns of d, from (row, column) on, and k
/// elements of the inner dimension.
struct ProductBlock {
  float* d;       // element (0, 0)
  const float* a; // rows of a; [k, rows] if transposed
  const float* b; // packed columns of b
  float* panels;  // scratch: group_rows packed rows of a
  std::int64_t ldd, lda, row, column, rows, columns, k;
  bool transpose_a;
  float alpha, beta;                  // with beta = 0, d is not read
  const Epilogue* epilogue = nullptr; // given with the last elements of the inner dimension
};

/// Matrix products by packed panels: some rows of a, or some columns of b. For each element of the inner dimension, the
/// values of a panel are contiguous; those beyond the edge of the matrix are 0. Panels follow each other.
/// An element of d is a sum in the order of the inner dimension, so its bits do not depend on the block.
struct ProductLoops {
  /// Rows of a panel of a, and columns of a panel of b; 0: this instruction set has no such loops.
  std::int64_t rows = 0, columns = 0;
  std::int64_t group_rows = 0;  // rows of a that are packed at once
  std::int64_t max_columns = 0; // columns of b whose packed block stays in the L2 cache
  /// Packs columns [0, columns) of b, which is [k, columns], or [columns, k] if transposed; `stride` is its row stride.
  void (*pack)(float* to, const float* b, std::int64_t stride, std::int64_t columns, std::int64_t k, bool transposed);
  void (*multiply)(const ProductBlock& block);
};

struct Loops {
  const char* name;

  // Over n elements. y may alias an input.
  void (*add)(float* y, const float* a, const float* b, std::int64_t n);
  void (*scale)(float* x, float factor, std::int64_t n);
  void (*gelu)(float* y, const float* x, std::int64_t n);
  void (*gelu_bwd)(float* dx, const float* dy, const float* x, std::int64_t n);
  void (*silu_mul)(float* y, const float* gate, const float* up, std::int64_t n);
  void (*silu_mul_bwd)(float* dgate, float* dup, const float* dy, const float* gate, const float* up, std::int64_t n);
  /// Rotates (first, second) by the angles; y1 and y2 may be x1 and x2.
  void (*rotate)(float* y1, float* y2, const float* x1, const float* x2, const float* cosine, const float* sine,
                 std::int64_t n);
  void (*dropout)(float* y, const float* x, std::int64_t n, const DropRow& drop);
  /// z += bias, y = gelu(z); bias may be null.
  void (*bias_gelu)(float* y, float* z, const float* bias, std::int64_t n);
  /// y = residual + dropout(x + bias); bias and drop may be null.
  void (*bias_dropout_add)(float* y, const float* x, const float* bias, const float* residual, std::int64_t n,
                           const DropRow* drop);

  // One row of a norm. mean is null for rms norm.
  void (*norm)(float* y, const float* x, const float* weight, const float* bias, std::int64_t n, float eps, float* mean,
               float* rstd);
  /// residual may be null; dx may be dy or residual.
  void (*norm_bwd)(float* dx, const float* dy, const float* x, const float* weight, const float* residual,
                   std::int64_t n, const float* mean, float rstd);

  // Sums over the rows of at most kColumns columns; `stride` is the row stride.
  void (*column_sums)(float* sums, const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n);
  /// Adds to dweight and dbias; mean is null for rms norm, dbias may be null.
  void (*norm_bwd_weight)(float* dweight, float* dbias, const float* dy, const float* x, const float* mean,
                          const float* rstd, std::int64_t rows, std::int64_t stride, std::int64_t n);
  double (*sum_squares)(const float* x, std::int64_t n);

  // One row of `keys` scores, of which only the first `seen` count.
  /// Returns the log of the sum of exponentials.
  float (*softmax)(float* y, const float* x, float scale, std::int64_t seen, std::int64_t keys);
  /// y = exp(scale * x - lse).
  void (*softmax_from_lse)(float* y, const float* x, float scale, float lse, std::int64_t seen, std::int64_t keys);
  /// delta may be null: then it is the inner product of dy and y.
  void (*softmax_bwd)(float* dx, const float* dy, const float* y, float scale, const float* delta, std::int64_t n);
  /// On return, scores = dropout(probabilities) and dp = gradient of the scores. On entry dp = do v^T. drop may be
  /// null.
  void (*attention_bwd)(float* scores, float* dp, float lse, float delta, std::int64_t seen, std::int64_t keys,
                        const DropRow* drop);
  float (*dot)(const float* a, const float* b, std::int64_t n);
  /// y = y_factor * y + x_factor * x.
  void (*combine)(float* y, float y_factor, const float* x, float x_factor, std::int64_t n);

  /// d[j] = alpha * (a . row j of b) + beta * d[j], for n rows of k elements; with beta = 0, d need not be a number.
  void (*multiply_row)(float* d, const float* a, const float* b, std::int64_t ldb, std::int64_t n, std::int64_t k,
                       float alpha, float beta);

  ProductLoops product;
  /// Applies an epilogue to `rows` x `columns` elements of d, from (row, column) on.
  void (*finish)(const Epilogue& epilogue, float* d, std::int64_t ldd, std::int64_t row, std::int64_t column,
                 std::int64_t rows, std::int64_t columns);

  // One row of logits.
  float (*row_max)(const float* x, std::int64_t n);
  float (*sum_exp)(const float* x, float max, std::int64_t n);
  /// x = exp(x - max); returns the sum.
  float (*exp_sum)(float* x, float max, std::int64_t n);
  /// x = exp(x - max) * factor.
  void (*exp_scaled)(float* x, float max, float factor, std::int64_t n);

  void (*adamw)(float* p, const float* g, float* m, float* v, std::int64_t n, const AdamWStep& step);
  void (*sgd)(float* p, const float* g, float* velocity, std::int64_t n, const SgdStep& step);

  HalfLoops bf16, f16;

  /// to[i, j] = from[j, i] for `rows` rows and `columns` columns of `to`; the strides are row strides.
  void (*transpose)(float* to, std::int64_t to_stride, const float* from, std::int64_t from_stride, std::int64_t rows,
                    std::int64_t columns);
};

/// Columns that a sum over rows handles at once.
inline constexpr std::int64_t kColumns = 64;

/// The loops for the best instruction set of this machine.
const Loops& best_loops();

/// All loops that this machine can run, for tests. Ends with null.
using LoopsList = const Loops* [4];
void runnable_loops(LoopsList& list);

} // namespace triax::kernels_cpu
