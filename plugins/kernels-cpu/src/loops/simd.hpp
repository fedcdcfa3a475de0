// SPDX-License-Identifier: Apache-2.0
// Vectors as wide as the registers of the instruction set that this file is compiled for.
//
// Compiled several times, each time into its own namespace (TRIAX_LOOPS). Do not use inline functions of other headers
// here or in the loops: the linker keeps one copy, which may be compiled for an instruction set that the CPU lacks.
// Products and sums are fused only by explicit fma(), so that an element has the same bits at any position.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define TRIAX_INLINE inline __attribute__((always_inline))

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif

using Float = float __attribute__((vector_size(kWidth * 4)));
using Int = std::int32_t __attribute__((vector_size(kWidth * 4)));
using Unsigned = std::uint32_t __attribute__((vector_size(kWidth * 4)));
using Wide = std::uint64_t __attribute__((vector_size(kWidth * 4)));
using Half = float __attribute__((vector_size(kWidth * 2)));
using Double = double __attribute__((vector_size(kWidth * 4)));

/// A position in a row: a whole vector at element i, or the n < kWidth remaining elements.
struct Full {
  std::int64_t i;
};
struct Part {
  std::int64_t i;
  int n;
};

/// Calls body(position) over n elements.
template <class Body>
TRIAX_INLINE void each(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) body(Full{i});
  if (i < n) body(Part{i, static_cast<int>(n - i)});
}

TRIAX_INLINE Float splat(float x) {
  return Float{} + x;
}

TRIAX_INLINE Float load(const float* p, Full at) {
  Float v;
  __builtin_memcpy(&v, p + at.i, sizeof v);
  return v;
}
TRIAX_INLINE void store(float* p, Full at, Float v) {
  __builtin_memcpy(p + at.i, &v, sizeof v);
}
/// Lanes outside a Part are 0.
TRIAX_INLINE Float load(const float* p, Part at) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << at.n) - 1), p + at.i);
#else
  Float v{};
  __builtin_memcpy(&v, p + at.i, static_cast<unsigned long>(at.n) * sizeof(float));
  return v;
#endif
}
TRIAX_INLINE void store(float* p, Part at, Float v) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p + at.i, static_cast<__mmask16>((1u << at.n) - 1), v);
#else
  __builtin_memcpy(p + at.i, &v, static_cast<unsigned long>(at.n) * sizeof(float));
#endif
}

TRIAX_INLINE Int lanes() {
  Int v{};
  for (int i = 0; i < kWidth; ++i) v[i] = i;
  return v;
}
/// v, with the lanes outside a Part set to `outside`.
TRIAX_INLINE Float within(Full, Float v, float) {
  return v;
}
TRIAX_INLINE Float within(Part at, Float v, float outside) {
  return lanes() < at.n ? v : splat(outside);
}

/// a * b + c, rounded once if the instruction set has FMA.
TRIAX_INLINE Float fma(Float a, Float b, Float c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

TRIAX_INLINE Float root(Float x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#elif defined(__SSE2__)
  return _mm_sqrt_ps(x);
#else
  Float y;
  for (int i = 0; i < kWidth; ++i) y[i] = __builtin_sqrtf(x[i]);
  return y;
#endif
}

/// The larger of the two; b if a is NaN.
TRIAX_INLINE Float larger(Float a, Float b) {
  return a > b ? a : b;
}

/// Sum of the lanes: adds the upper half to the lower half, repeatedly.
TRIAX_INLINE float sum(Float v) {
  float lane[kWidth];
  __builtin_memcpy(lane, &v, sizeof v);
  for (int half = kWidth / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}
TRIAX_INLINE float largest(Float v) {
  float result = v[0];
  for (int i = 1; i < kWidth; ++i) result = v[i] > result ? v[i] : result;
  return result;
}

/// Products of the even lanes, as 64-bit integers.
TRIAX_INLINE Wide multiply_even(Unsigned a, Unsigned b) {
#if defined(__AVX512F__)
  return (Wide)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Wide)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Wide)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return ((Wide)a & 0xFFFFFFFFu) * ((Wide)b & 0xFFFFFFFFu);
#endif
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
