// SPDX-License-Identifier: Apache-2.0
// Conversions between the 16-bit storage types and fp32. Narrowing rounds to nearest even; values beyond the largest
// number become infinity; NaN stays NaN. The bits equal those of triax/half.hpp.
#pragma once

#include "loops/simd.hpp"

namespace triax::kernels_cpu::TRIAX_LOOPS {
namespace {

using Short = std::uint16_t __attribute__((vector_size(kWidth * 2)));

/// to = convert(from) in vectors; the last one is padded with zeros.
template <class In, class Out, class To, class From, class Convert>
TRIAX_INLINE void each_half(To* to, const From* from, std::int64_t n, const Convert& convert) {
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const auto count = static_cast<unsigned long>(n - i < kWidth ? n - i : kWidth);
    In in{};
    __builtin_memcpy(&in, from + i, count * sizeof(From));
    const Out out = convert(in);
    __builtin_memcpy(to + i, &out, count * sizeof(To));
  }
}

TRIAX_INLINE Unsigned bf16_bits(Unsigned bits) {
  const Unsigned nearest = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : nearest;
}

TRIAX_INLINE Unsigned f16_bits(Unsigned bits) {
  const Unsigned sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  const Unsigned normal = (magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u)) >> 13;
  const Unsigned subnormal = (Unsigned)((Float)magnitude + 0.5f) - 0x3F000000u; // the addition rounds
  Unsigned half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477FF000u ? Unsigned{} + 0x7C00u : half; // values that round to more than 65504
  half = magnitude > 0x7F800000u ? Unsigned{} + 0x7E00u : half;
  return sign | half;
}

TRIAX_INLINE Unsigned f16_value(Unsigned half) {
  const Unsigned sign = (half & 0x8000u) << 16, magnitude = half & 0x7FFFu;
  const Unsigned normal = (magnitude << 13) + 0x38000000u;
  const Unsigned subnormal = (Unsigned)(__builtin_convertvector((Int)magnitude, Float) * 0x1p-24f);
  const Unsigned finite = magnitude < 0x0400u ? subnormal : normal;
  return sign | (magnitude >= 0x7C00u ? ((magnitude & 0x03FFu) << 13) | 0x7F800000u : finite);
}

void widen_bf16(float* to, const std::uint16_t* from, std::int64_t n) {
  each_half<Short, Unsigned>(to, from, n, [](Short in) { return __builtin_convertvector(in, Unsigned) << 16; });
}
void narrow_bf16(std::uint16_t* to, const float* from, std::int64_t n) {
  each_half<Unsigned, Short>(to, from, n, [](Unsigned in) { return __builtin_convertvector(bf16_bits(in), Short); });
}
void widen_f16(float* to, const std::uint16_t* from, std::int64_t n) {
  each_half<Short, Unsigned>(to, from, n, [](Short in) { return f16_value(__builtin_convertvector(in, Unsigned)); });
}
void narrow_f16(std::uint16_t* to, const float* from, std::int64_t n) {
  each_half<Unsigned, Short>(to, from, n, [](Unsigned in) { return __builtin_convertvector(f16_bits(in), Short); });
}

} // namespace
} // namespace triax::kernels_cpu::TRIAX_LOOPS
