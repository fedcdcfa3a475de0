// SPDX-License-Identifier: Apache-2.0
// Sums, activations, dropout, rotation.
#pragma once

#include "loops/math.hpp"
#include "loops/random_loops.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

void add(float* y, const float* a, const float* b, std::int64_t n) {
  each(n, [&](auto at) { store(y, at, load(a, at) + load(b, at)); });
}

void scale(float* x, float factor, std::int64_t n) {
  each(n, [&](auto at) { store(x, at, load(x, at) * factor); });
}

// gelu(x) = x/2 (1 + tanh(u)) = x logistic(2u); this form has no cancellation where tanh(u) is near -1.
constexpr float kSlope = 1.5957691216057308f, kCubic = 0.044715f; // kSlope = 2 sqrt(2/pi)

TRIAX_INLINE Float gelu_of(Float x) {
  return x * logistic(kSlope * fma(kCubic * x * x, x, x));
}

void gelu(float* y, const float* x, std::int64_t n) {
  each(n, [&](auto at) { store(y, at, gelu_of(load(x, at))); });
}

void bias_gelu(float* y, float* z, const float* bias, std::int64_t n) {
  each(n, [&](auto at) {
    Float x = load(z, at);
    if (bias) {
      x += load(bias, at);
      store(z, at, x);
    }
    store(y, at, gelu_of(x));
  });
}

void gelu_bwd(float* dx, const float* dy, const float* x, std::int64_t n) {
  each(n, [&](auto at) {
    const Float v = load(x, at), square = v * v;
    const Float s = logistic(kSlope * fma(kCubic * square, v, v));
    const Float slope = kSlope * fma(splat(3 * kCubic), square, splat(1.0f));
    store(dx, at, load(dy, at) * fma(v * s * (1.0f - s), slope, s));
  });
}

void silu_mul(float* y, const float* gate, const float* up, std::int64_t n) {
  each(n, [&](auto at) {
    const Float g = load(gate, at);
    store(y, at, g * logistic(g) * load(up, at));
  });
}

void silu_mul_bwd(float* dgate, float* dup, const float* dy, const float* gate, const float* up, std::int64_t n) {
  each(n, [&](auto at) {
    const Float g = load(gate, at), d = load(dy, at), s = logistic(g);
    store(dgate, at, d * load(up, at) * s * fma(g, 1.0f - s, splat(1.0f)));
    store(dup, at, d * g * s);
  });
}

void rotate(float* y1, float* y2, const float* x1, const float* x2, const float* cosine, const float* sine,
            std::int64_t n) {
  each(n, [&](auto at) {
    const Float first = load(x1, at), second = load(x2, at), c = load(cosine, at), s = load(sine, at);
    store(y1, at, first * c - second * s);
    store(y2, at, second * c + first * s);
  });
}

/// Calls body(begin, n) for each chunk of a row; one chunk uses one batch of random words.
template <class Body>
TRIAX_INLINE void each_chunk(std::int64_t n, const Body& body) {
  for (std::int64_t begin = 0; begin < n; begin += DropWords::kChunk) {
    body(begin, n - begin < DropWords::kChunk ? n - begin : DropWords::kChunk);
  }
}

void dropout(float* y, const float* x, std::int64_t n, const DropRow& drop) {
  DropWords words(drop);
  each_chunk(n, [&](std::int64_t begin, std::int64_t length) {
    words.make(begin, length);
    each(length, [&](auto at) { store(y + begin, at, words.apply(at.i, load(x + begin, at))); });
  });
}

void bias_dropout_add(float* y, const float* x, const float* bias, const float* residual, std::int64_t n,
                      const DropRow* drop) {
  const auto branch = [&](auto at) { return bias ? load(x, at) + load(bias, at) : load(x, at); };
  if (!drop) return each(n, [&](auto at) { store(y, at, load(residual, at) + branch(at)); });
  DropWords words(*drop);
  each_chunk(n, [&](std::int64_t begin, std::int64_t length) {
    words.make(begin, length);
    each(length, [&](auto at) {
      const std::int64_t i = at.i;
      at.i += begin;
      store(y, at, load(residual, at) + words.apply(i, branch(at)));
    });
  });
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
