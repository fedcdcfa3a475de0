// SPDX-License-Identifier: Apache-2.0
// exp and the logistic function on vectors, with an error of about one unit in the last place.
#pragma once

#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

/// 2^k for -126 <= k <= 127.
TRIAX_INLINE Float power_of_two(Int k) {
  return (Float)((Unsigned)(k + 127) << 23);
}

/// exp(x): x = n ln 2 + r with |r| <= ln 2 / 2. The polynomial for r is that of Cephes (Moshier); ln 2 is split in two
/// (Cody & Waite). At the clamp limits the result is already infinity or 0. Denormal results are rounded once.
TRIAX_INLINE Float exp(Float x) {
  constexpr float kRound = 12582912.0f; // 1.5 * 2^23: adding it rounds x to an integer in the low bits
  x = x > 89.0f ? splat(89.0f) : x;
  x = x < -104.0f ? splat(-104.0f) : x;
  const Float shifted = fma(x, splat(1.44269504088896341f), splat(kRound));
  const Float n = shifted - kRound;
  const Int whole = (Int)((Unsigned)shifted - (Unsigned)splat(kRound));
  Float r = fma(n, splat(-0.693359375f), x);
  r = fma(n, splat(2.12194440e-4f), r);
  Float p = splat(1.9875691500e-4f);
  p = fma(p, r, splat(1.3981999507e-3f));
  p = fma(p, r, splat(8.3334519073e-3f));
  p = fma(p, r, splat(4.1665795894e-2f));
  p = fma(p, r, splat(1.6666665459e-1f));
  p = fma(p, r, splat(5.0000001201e-1f));
  p = fma(p, r * r, r) + 1.0f;
  // Two factors, because 2^n may overflow or be denormal.
  const Int first = whole >> 1;
  return p * power_of_two(first) * power_of_two(whole - first);
}

/// 1 / (1 + exp(-x))
TRIAX_INLINE Float logistic(Float x) {
  return 1.0f / (1.0f + exp(-x));
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
