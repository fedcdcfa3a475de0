// SPDX-License-Identifier: Apache-2.0
// 16-bit floating-point numbers of the host, without instructions for them: cuBLAS and NCCL stand-ins compute with
// them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace triax::gpu_stand_in {

inline constexpr int kHalfMantissa = 10;
inline constexpr int kHalfBias = 15;

inline float half_to_float(std::uint16_t half) {
  const int exponent = half >> kHalfMantissa & 31;
  const int mantissa = half & 0x3FF;
  const float sign = half >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - kHalfBias - kHalfMantissa);
  return sign * std::ldexp(static_cast<float>(mantissa | 0x400), exponent - kHalfBias - kHalfMantissa);
}

inline std::uint16_t float_to_half(float value) { // to the nearest, ties to even
  constexpr std::uint16_t kInfinity = 0x7C00;
  const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16 & 0x8000);
  if (std::isnan(value)) return 0x7FFF;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return sign | kInfinity;
  // The distance of neighbours at this magnitude; subnormal numbers have the one of the smallest normal number.
  const int exponent = std::max(magnitude == 0 ? -100 : std::ilogb(magnitude), 1 - kHalfBias);
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, kHalfMantissa - exponent)));
  // A carry into the next exponent comes out right, because units continue there.
  return static_cast<std::uint16_t>(sign | (units + ((exponent + kHalfBias - 1) << kHalfMantissa)));
}

inline std::uint16_t float_to_bfloat(float value) {
  if (std::isnan(value)) return 0x7FFF;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

} // namespace triax::gpu_stand_in
