// SPDX-License-Identifier: Apache-2.0
// Numbers as lanes hold them: types of PTX as types of C++, 16-bit floats. Compiled once per instruction set.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace triax::gpu_stand_in::STAND_IN_ISA {

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

template <class T>
using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
inline T get(Word<T> word) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return {static_cast<std::uint16_t>(word)};
  else if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<T>(word);
  else
    return static_cast<T>(word);
}

// 16-bit values are zero-extended to the lane; 8-bit ones as their type says.
template <class T>
inline Word<T> put(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>)
    return value.bits;
  else if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<Word<T>>(value);
  else if constexpr (sizeof(T) == 2)
    return static_cast<std::uint16_t>(value);
  else
    return static_cast<Word<T>>(value);
}

inline float flush(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x7F800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}

inline float saturated(float x) {
  return x > 0 ? (x <= 1 ? x : 1.0f) : 0.0f;
} // NaN and -0: 0
inline double saturated(double x) {
  return x > 0 ? (x <= 1 ? x : 1.0) : 0.0;
}

inline float to_float(Half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000) << 16, magnitude = h.bits & 0x7FFF;
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  const std::uint32_t special = magnitude << 13 | (magnitude > 0x7C00 ? 0x7FC00000u : 0x7F800000u);
  return std::bit_cast<float>(sign | (magnitude >= 0x7C00 ? special : scaled));
}
inline float to_float(Brain b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16);
}

template <bool kToZero>
inline Half to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000, u = bits & 0x7FFFFFFF;
  const float magnitude = std::bit_cast<float>(u);
  const std::uint32_t round = kToZero ? 0 : 0xFFF + (u >> 13 & 1);
  const std::uint32_t normal = (u - (112u << 23) + round) >> 13;
  const std::uint32_t tiny =
      kToZero ? static_cast<std::uint32_t>(static_cast<std::int32_t>(u < 0x38800000 ? magnitude * 0x1p24f : 0.0f))
              : std::bit_cast<std::uint32_t>(magnitude + 0.5f) - 0x3F000000u;
  const std::uint32_t large = u > 0x7F800000 ? 0x7FFF : kToZero && u != 0x7F800000 ? 0x7BFF : 0x7C00;
  const std::uint32_t finite = u < 0x38800000 ? tiny : normal;
  const std::uint32_t limit = kToZero ? 0x47800000 : 0x477FF000; // from here on not finite as a half
  const std::uint32_t result = u >= limit ? large : finite;
  return {static_cast<std::uint16_t>(u > 0x7F800000 ? 0x7FFF : result | sign)};
}

template <bool kToZero>
inline Brain to_brain(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = kToZero ? u >> 16 : (u + 0x7FFF + (u >> 16 & 1)) >> 16;
  return {static_cast<std::uint16_t>((u & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : rounded)};
}

// PTX: the other operand where one is NaN, 0x7FFFFFFF where both are, and -0 < +0.
template <class T, bool kMax>
inline T extremum(T a, T b) {
  using U = Word<T>;
  const U ua = std::bit_cast<U>(a), ub = std::bit_cast<U>(b);
  const T equal = std::bit_cast<T>(kMax ? ua & ub : ua | ub);
  const T ordered = (kMax ? a > b : a < b) ? a : (kMax ? b > a : b < a) ? b : equal;
  const T nan = std::bit_cast<T>(static_cast<U>(std::numeric_limits<U>::max() >> 1));
  return a != a ? (b != b ? nan : b) : b != b ? a : ordered;
}

// Float to integer, saturating. NaN: 0, or 1 << (bits - 1) where PTX says so.
template <class To, class From>
inline To to_integer(From x) {
  using Limits = std::numeric_limits<To>;
  constexpr bool kHigh = sizeof(From) == 8 || sizeof(To) == 8;
  constexpr To kNan = kHigh ? static_cast<To>(std::make_unsigned_t<To>{1} << (sizeof(To) * 8 - 1)) : To{0};
  constexpr From kBelow = static_cast<From>(Limits::min());
  constexpr From kAbove = std::is_signed_v<To> ? -static_cast<From>(Limits::min())
                                               : static_cast<From>(static_cast<From>(Limits::max() / 2 + 1) * 2);
  if (x != x) return kNan;
  if (x >= kAbove) return Limits::max();
  if (x <= kBelow) return Limits::min();
  return static_cast<To>(x);
}

} // namespace triax::gpu_stand_in::STAND_IN_ISA
