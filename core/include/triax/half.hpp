// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating types bfloat16 and IEEE half (f16), for storage. Arithmetic is done in float.
//
// Threads: values, any thread. Ownership, blocking, errors: none. Narrowing rounds once to nearest, ties to even, also
// from double. (A double is rounded to odd in float first, so that rounding twice gives the same result.)
// Overflow gives infinity; NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "triax/export.hpp"

namespace triax {

namespace half_detail {

/// `value` if a float can hold it, else the neighbouring float whose last bit is 1. A second rounding cannot mistake
/// that one for a tie.
inline float round_to_odd(double value) noexcept {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits; // towards zero
  return std::bit_cast<float>(bits | 1u);
}

constexpr std::uint16_t bf16_bits(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u); // quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

constexpr std::uint16_t f16_bits(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);  // NaN
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u); // rounds past 65504
  if (magnitude < 0x38800000u) { // subnormal in half: the float addition rounds
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude - 0x38000000u + 0x0FFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

constexpr float f16_value(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x03FFu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

} // namespace half_detail

/// bfloat16: 8 bits of exponent, 7 of fraction. Rounds to nearest, ties to even.
struct Bf16 {
  std::uint16_t bits = 0;
  Bf16() = default;
  explicit Bf16(float value) noexcept : bits(half_detail::bf16_bits(value)) {}
  explicit Bf16(double value) noexcept : Bf16(half_detail::round_to_odd(value)) {}
  operator float() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction. Rounds to nearest, ties to even.
struct F16 {
  std::uint16_t bits = 0;
  F16() = default;
  explicit F16(float value) noexcept : bits(half_detail::f16_bits(value)) {}
  explicit F16(double value) noexcept : F16(half_detail::round_to_odd(value)) {}
  operator float() const noexcept { return half_detail::f16_value(bits); }
};

} // namespace triax
