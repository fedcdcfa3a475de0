// SPDX-License-Identifier: Apache-2.0
// Layer norm and rms norm of one row, and sums over rows.
#pragma once

#include "loops.hpp"
#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

/// Sum of value(place) over n elements; lanes outside the row do not count.
template <class Value>
TRIAX_INLINE float sum_of(std::int64_t n, const Value& value) {
  Float total{};
  each(n, [&](auto at) { total += within(at, value(at), 0.0f); });
  return sum(total);
}

void norm(float* y, const float* x, const float* weight, const float* bias, std::int64_t n, float eps, float* mean,
          float* rstd) {
  const float count = static_cast<float>(n);
  const float middle = mean ? sum_of(n, [&](auto at) { return load(x, at); }) / count : 0.0f;
  const float square = sum_of(n, [&](auto at) {
    const Float d = load(x, at) - middle;
    return d * d;
  });
  const float inverse = 1.0f / __builtin_sqrtf(square / count + eps);
  each(n, [&](auto at) {
    const Float z = (load(x, at) - middle) * inverse;
    store(y, at, bias ? fma(z, load(weight, at), load(bias, at)) : z * load(weight, at));
  });
  if (mean) *mean = middle;
  *rstd = inverse;
}

void norm_bwd(float* dx, const float* dy, const float* x, const float* weight, const float* residual, std::int64_t n,
              const float* mean, float rstd) {
  const float middle = mean ? *mean : 0.0f;
  Float sum_g{}, sum_gz{};
  each(n, [&](auto at) {
    const Float g = load(dy, at) * load(weight, at); // 0 outside the row
    sum_g += g;
    sum_gz = fma(g, (load(x, at) - middle) * rstd, sum_gz);
  });
  const float count = static_cast<float>(n);
  const float mean_g = mean ? sum(sum_g) / count : 0.0f, mean_gz = sum(sum_gz) / count;
  each(n, [&](auto at) {
    const Float g = load(dy, at) * load(weight, at), z = (load(x, at) - middle) * rstd;
    const Float d = rstd * fma(z, splat(-mean_gz), g - mean_g);
    store(dx, at, residual ? d + load(residual, at) : d);
  });
}

// Rows are summed in blocks of kRowBlock, and then the block sums: less rounding error than one running sum.
constexpr std::int64_t kRowBlock = 32;

/// sums[j] += sum over r of term(r, position of j); n <= kColumns.
template <class Term>
TRIAX_INLINE void add_over_rows(float* sums, std::int64_t rows, std::int64_t n, const Term& term) {
  float total[kColumns] = {};
  for (std::int64_t begin = 0; begin < rows; begin += kRowBlock) {
    const std::int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    each(n, [&](auto at) {
      Float block{};
      for (std::int64_t r = begin; r < end; ++r) block = term(block, r, at);
      store(total, at, load(total, at) + block);
    });
  }
  each(n, [&](auto at) { store(sums, at, load(sums, at) + load(total, at)); });
}

void column_sums(float* sums, const float* x, std::int64_t rows, std::int64_t stride, std::int64_t n) {
  add_over_rows(sums, rows, n, [&](Float block, std::int64_t r, auto at) { return block + load(x + r * stride, at); });
}

void norm_bwd_weight(float* dweight, float* dbias, const float* dy, const float* x, const float* mean,
                     const float* rstd, std::int64_t rows, std::int64_t stride, std::int64_t n) {
  add_over_rows(dweight, rows, n, [&](Float block, std::int64_t r, auto at) {
    const Float z = (load(x + r * stride, at) - (mean ? mean[r] : 0.0f)) * rstd[r];
    return fma(load(dy + r * stride, at), z, block);
  });
  if (dbias) column_sums(dbias, dy, rows, stride, n);
}

double sum_squares(const float* x, std::int64_t n) {
  constexpr int kStep = kWidth / 2;
  Double total[2] = {};
  const auto square = [&](Double& into, const float* from, int count) {
    Half half{};
    __builtin_memcpy(&half, from, static_cast<unsigned long>(count) * sizeof(float));
    const Double wide = __builtin_convertvector(half, Double);
    into += wide * wide;
  };
  std::int64_t i = 0;
  for (; i + 2 * kStep <= n; i += 2 * kStep) {
    square(total[0], x + i, kStep);
    square(total[1], x + i + kStep, kStep);
  }
  if (i + kStep <= n) {
    square(total[0], x + i, kStep);
    i += kStep;
  }
  if (i < n) square(total[1], x + i, static_cast<int>(n - i));
  const Double both = total[0] + total[1];
  double result = 0;
  for (int lane = 0; lane < kStep; ++lane) result += both[lane];
  return result;
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
