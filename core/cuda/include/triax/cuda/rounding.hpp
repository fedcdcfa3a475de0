// SPDX-License-Identifier: Apache-2.0
// Type conversion of numbers, bit-identical to the host device: one rounding to nearest, ties to even.
//
// Host threads: any. Kernels call these functions, too. Ownership, blocking, errors: none.
// Kernels compute in float (in double if the data is double): value_of(x) converts an element to it, rounded<T>(v)
// back.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "triax/cuda/host_device.hpp"
#include "triax/half.hpp"

namespace triax::cuda {

/// Whether T is bf16 or f16.
template <class T>
inline constexpr bool kHalf = std::is_same_v<T, Bf16> || std::is_same_v<T, F16>;

/// A number in a type to compute with.
/// @{
TRIAX_HD inline float value_of(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
TRIAX_HD inline float value_of(F16 x) {
  return half_detail::f16_value(x.bits);
}
template <class T>
TRIAX_HD inline T value_of(T x) {
  return x;
}
/// @}

/// `value` if a float can hold it, else the neighbouring float whose last bit is 1, as half.hpp computes it on the
/// host.
TRIAX_HD inline float to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (value != value || static_cast<double>(nearest) == value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double size = value < 0 ? -value : value, nearest_size = nearest < 0 ? -static_cast<double>(nearest) : nearest;
  if (nearest_size > size) --bits; // towards zero
  return std::bit_cast<float>(bits | 1u);
}

/// Rounds a float or double to the floating type T.
/// @{
template <class T>
TRIAX_HD inline T rounded(float value) {
  T out{};
  if constexpr (std::is_same_v<T, Bf16>) {
    out.bits = half_detail::bf16_bits(value);
  } else if constexpr (std::is_same_v<T, F16>) {
    out.bits = half_detail::f16_bits(value);
  } else {
    out = static_cast<T>(value);
  }
  return out;
}
template <class T>
TRIAX_HD inline T rounded(double value) {
  if constexpr (kHalf<T>) {
    return rounded<T>(to_odd(value));
  } else {
    return static_cast<T>(value);
  }
}
/// @}

/// Past 2^53 a double cannot hold the last bits. Setting one bit for all lost bits keeps a later rounding correct.
TRIAX_HD inline double sticky_double(std::int64_t value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53, kLost = (1 << 10) - 1;
  if (value > -kExact && value < kExact) return static_cast<double>(value);
  return static_cast<double>((value & ~kLost) | ((value & kLost) != 0 ? kLost + 1 : 0));
}

/// An integer type's limits as plain values.
template <class T>
struct Limits {
  static constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
};

/// Converts between any two element types. To an integer: rounds to nearest, ties to even, and saturates; NaN becomes
/// 0.
template <class To, class From>
TRIAX_HD inline To converted(From value) {
  if constexpr (kHalf<From>) {
    return converted<To>(value_of(value));
  } else if constexpr (kHalf<To>) {
    if constexpr (std::is_floating_point_v<From>) {
      return rounded<To>(value);
    } else {
      return rounded<To>(sticky_double(static_cast<std::int64_t>(value)));
    }
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    if (value != value) return 0;
    const From nearest = rint(value);
    if (nearest <= static_cast<From>(Limits<To>::kMin)) return Limits<To>::kMin;
    if (nearest >= static_cast<From>(Limits<To>::kMax)) return Limits<To>::kMax;
    return static_cast<To>(nearest);
  } else {
    const auto wide = static_cast<std::int64_t>(value);
    if (wide < static_cast<std::int64_t>(Limits<To>::kMin)) return Limits<To>::kMin;
    if (wide > static_cast<std::int64_t>(Limits<To>::kMax)) return Limits<To>::kMax;
    return static_cast<To>(wide);
  }
}

/// a + b in the type of both. Integers wrap.
template <class T>
TRIAX_HD inline T sum_of(T a, T b) {
  if constexpr (kHalf<T>) {
    return rounded<T>(value_of(a) + value_of(b));
  } else if constexpr (std::is_integral_v<T>) { // signed overflow would be undefined
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}

} // namespace triax::cuda
