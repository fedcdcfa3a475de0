// Between bf16 as it is stored and fp32. Narrowing rounds to nearest even; NaN stays NaN (triax/half.hpp).
//
// Threads: pure functions over the caller's memory. Ownership: none. Blocking, errors: never.
#pragma once

#include "loops/simd.hpp"

namespace triax::cpu::TRIAX_LOOPS {
namespace {

using Short = std::uint16_t __attribute__((vector_size(kWidth * 2)));

TRIAX_INLINE Unsigned rounded_bits(Unsigned bits) {
  const Unsigned nearest = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : nearest;
}

void widen(float* to, const std::uint16_t* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const auto count = static_cast<unsigned long>(n - i < kWidth ? n - i : kWidth);
    Short in{};
    __builtin_memcpy(&in, from + i, count * sizeof(std::uint16_t));
    const Unsigned out = __builtin_convertvector(in, Unsigned) << 16;
    __builtin_memcpy(to + i, &out, count * sizeof(float));
  }
}

void narrow(std::uint16_t* to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const auto count = static_cast<unsigned long>(n - i < kWidth ? n - i : kWidth);
    Unsigned in{};
    __builtin_memcpy(&in, from + i, count * sizeof(float));
    const Short out = __builtin_convertvector(rounded_bits(in), Short);
    __builtin_memcpy(to + i, &out, count * sizeof(std::uint16_t));
  }
}

} // namespace
} // namespace triax::cpu::TRIAX_LOOPS
