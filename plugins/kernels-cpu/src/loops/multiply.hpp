// SPDX-License-Identifier: Apache-2.0
// The product of a row with the rows of a matrix. Each element of the matrix is used once, so memory limits its speed.
#pragma once

#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

/// Rows that are read at once: as many independent chains of additions, in registers.
constexpr int kRowsTogether = 8;

/// The inner products of `a` with kRows rows. The order of a sum depends on k alone.
template <int kRows>
TRIAX_INLINE void multiply_rows(float* d, const float* a, const float* b, std::int64_t ldb, std::int64_t k, float alpha,
                                float beta) {
  Float sums[kRows] = {};
  each(k, [&](auto at) {
    const Float x = load(a, at);
#pragma GCC unroll 8 // without it, the sums are in memory
    for (int row = 0; row < kRows; ++row) sums[row] = fma(x, load(b + row * ldb, at), sums[row]);
  });
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) {
    const float product = alpha * sum(sums[row]);
    d[row] = beta == 0 ? product : product + beta * d[row];
  }
}

void multiply_row(float* d, const float* a, const float* b, std::int64_t ldb, std::int64_t n, std::int64_t k,
                  float alpha, float beta) {
  std::int64_t j = 0;
  for (; j + kRowsTogether <= n; j += kRowsTogether)
    multiply_rows<kRowsTogether>(d + j, a, b + j * ldb, ldb, k, alpha, beta);
  for (; j < n; ++j) multiply_rows<1>(d + j, a, b + j * ldb, ldb, k, alpha, beta);
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
