// SPDX-License-Identifier: Apache-2.0
// Exponentials of rows: softmax, attention, cross-entropy.
#pragma once

#include "loops/elementwise.hpp"
#include "loops/norm.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

constexpr float kInfinity = __builtin_inff();

/// Largest of n elements. Ignores NaN, which then appears in the sums.
float row_max(const float* x, std::int64_t n) {
  Float best = splat(-kInfinity);
  each(n, [&](auto at) { best = larger(within(at, load(x, at), -kInfinity), best); });
  return largest(best);
}

float sum_exp(const float* x, float max, std::int64_t n) {
  return sum_of(n, [&](auto at) { return exp(load(x, at) - max); });
}

float exp_sum(float* x, float max, std::int64_t n) {
  return sum_of(n, [&](auto at) {
    const Float e = exp(load(x, at) - max);
    store(x, at, e);
    return e;
  });
}

void exp_scaled(float* x, float max, float factor, std::int64_t n) {
  each(n, [&](auto at) { store(x, at, exp(load(x, at) - max) * factor); });
}

void zero(float* x, std::int64_t begin, std::int64_t end) {
  if (begin < end) __builtin_memset(x + begin, 0, static_cast<unsigned long>(end - begin) * sizeof(float));
}

float softmax(float* y, const float* x, float factor, std::int64_t seen, std::int64_t keys) {
  zero(y, seen, keys);
  if (seen == 0) return -kInfinity;
  // factor may be negative, so this takes the maximum of the products, not of the scores.
  Float best = splat(-kInfinity);
  each(seen, [&](auto at) { best = larger(within(at, load(x, at) * factor, -kInfinity), best); });
  const float max = largest(best);
  Float total{};
  each(seen, [&](auto at) {
    const Float e = exp(load(x, at) * factor - max);
    store(y, at, e);
    total += within(at, e, 0.0f);
  });
  const float of_all = sum(total);
  scale(y, 1.0f / of_all, seen);
  return max + __builtin_logf(of_all);
}

void softmax_from_lse(float* y, const float* x, float factor, float lse, std::int64_t seen, std::int64_t keys) {
  zero(y, seen, keys);
  each(seen, [&](auto at) { store(y, at, exp(load(x, at) * factor - lse)); });
}

void softmax_bwd(float* dx, const float* dy, const float* y, float factor, const float* delta, std::int64_t n) {
  const float inner = delta ? *delta : sum_of(n, [&](auto at) { return load(dy, at) * load(y, at); });
  each(n, [&](auto at) { store(dx, at, factor * load(y, at) * (load(dy, at) - inner)); });
}

float dot(const float* a, const float* b, std::int64_t n) {
  return sum_of(n, [&](auto at) { return load(a, at) * load(b, at); });
}

void combine(float* y, float y_factor, const float* x, float x_factor, std::int64_t n) {
  each(n, [&](auto at) { store(y, at, load(y, at) * y_factor + load(x, at) * x_factor); });
}

void attention_bwd(float* scores, float* dp, float lse, float delta, std::int64_t seen, std::int64_t keys,
                   const DropRow* drop) {
  zero(scores, seen, keys);
  zero(dp, seen, keys);
  if (!drop) {
    return each(seen, [&](auto at) {
      const Float p = exp(load(scores, at) - lse);
      store(scores, at, p);
      store(dp, at, p * (load(dp, at) - delta));
    });
  }
  DropWords words(*drop);
  each_chunk(seen, [&](std::int64_t begin, std::int64_t length) {
    words.make(begin, length);
    each(length, [&](auto at) {
      const std::int64_t i = at.i;
      at.i += begin;
      const Float p = exp(load(scores, at) - lse);
      store(scores, at, words.apply(i, p));
      store(dp, at, p * (words.apply(i, load(dp, at)) - delta));
    });
  });
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
