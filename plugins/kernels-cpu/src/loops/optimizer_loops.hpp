// SPDX-License-Identifier: Apache-2.0
// Optimizer updates.
#pragma once

#include "loops.hpp"
#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

void adamw(float* p, const float* gradient, float* m, float* v, std::int64_t n, const AdamWStep& step) {
  each(n, [&](auto at) {
    const Float g = load(gradient, at) * step.clip, old = load(p, at);
    const Float first = fma(splat(step.beta1), load(m, at), step.rest1 * g);
    const Float second = fma(splat(step.beta2), load(v, at), step.rest2 * g * g);
    const Float denominator = root(second * step.inverse_correction2) + step.eps;
    const Float update = fma(splat(step.decay), old, first * step.inverse_correction1 / denominator);
    store(m, at, first);
    store(v, at, second);
    store(p, at, fma(splat(-step.lr), update, old));
  });
}

void sgd(float* p, const float* gradient, float* velocity, std::int64_t n, const SgdStep& step) {
  each(n, [&](auto at) {
    const Float old = load(p, at);
    Float u = fma(splat(step.decay), old, load(gradient, at) * step.clip);
    if (velocity) {
      if (!step.first) u = fma(splat(step.momentum), load(velocity, at), u);
      store(velocity, at, u);
    }
    store(p, at, fma(splat(-step.lr), u, old));
  });
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
