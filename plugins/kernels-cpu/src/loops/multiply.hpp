// SPDX-License-Identifier: Apache-2.0
// The product of a row with the rows of a matrix. Each element of the matrix is used once, so memory limits its speed.
#pragma once

#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

/// The inner products of `a` with kRows rows. The order of each sum depends on k alone.
template <int kRows>
TRIAX_INLINE void multiply_rows(float* d, const float* a, const float* b, std::int64_t ldb, std::int64_t k, float alpha,
                                float beta) {
  Float sums[kRows][2] = {}; // of even and odd vectors: two chains of additions
  std::int64_t i = 0;
  for (; i + 2 * kWidth <= k; i += 2 * kWidth)
    for (int row = 0; row < kRows; ++row) {
      sums[row][0] = fma(load(a, Full{i}), load(b + row * ldb, Full{i}), sums[row][0]);
      sums[row][1] = fma(load(a, Full{i + kWidth}), load(b + row * ldb, Full{i + kWidth}), sums[row][1]);
    }
  for (; i < k; i += kWidth) {
    const Part at{i, static_cast<int>(k - i < kWidth ? k - i : kWidth)};
    for (int row = 0; row < kRows; ++row) {
      const Float x = at.n == kWidth ? load(a, Full{i}) : load(a, at);
      const Float y = at.n == kWidth ? load(b + row * ldb, Full{i}) : load(b + row * ldb, at);
      sums[row][0] = fma(x, y, sums[row][0]);
    }
  }
  for (int row = 0; row < kRows; ++row) {
    const float product = alpha * sum(sums[row][0] + sums[row][1]);
    d[row] = beta == 0 ? product : product + beta * d[row];
  }
}

void multiply_row(float* d, const float* a, const float* b, std::int64_t ldb, std::int64_t n, std::int64_t k,
                  float alpha, float beta) {
  constexpr int kTogether = 4; // rows that are streamed at once
  std::int64_t j = 0;
  for (; j + kTogether <= n; j += kTogether) multiply_rows<kTogether>(d + j, a, b + j * ldb, ldb, k, alpha, beta);
  for (; j < n; ++j) multiply_rows<1>(d + j, a, b + j * ldb, ldb, k, alpha, beta);
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
