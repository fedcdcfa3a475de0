// SPDX-License-Identifier: Apache-2.0
// Inputs of collectives and their expected results, computed on the host from the member and the element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "triax/conformance/rank.hpp"
#include "triax/element_type.hpp"

namespace triax::conformance {

inline constexpr DType kReducedTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64};
inline constexpr DType kAllTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                                      DType::i32, DType::i64, DType::u8};

enum class Values {
  exact,  // integers so small that sums over a group are exact in every type and order
  rounded // floating-point values of many magnitudes, whose sums depend on the order; integers whose sums wrap
};

/// A random number that depends on the member and the element. SplitMix64 (Steele, Lea, Flood: "Fast splittable
/// pseudorandom number generators", OOPSLA'14), because a check draws millions, also without optimization.
inline std::uint32_t random_bits(int member, std::int64_t element) {
  std::uint64_t bits = (static_cast<std::uint64_t>(member) << 40) + static_cast<std::uint64_t>(element) + 1;
  bits *= 0x9E3779B97F4A7C15u;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((bits ^ bits >> 31) >> 32);
}

template <class T>
T value_of(int member, std::int64_t element, Values values) {
  constexpr std::uint32_t kExactValues = 41; // sums of 6 members stay below 128, which bf16 has exactly
  const std::uint32_t bits = random_bits(member, element);
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return static_cast<std::uint8_t>(bits);
  } else if constexpr (std::is_integral_v<T>) {
    if (values == Values::exact) return static_cast<T>(bits % kExactValues) - static_cast<T>(kExactValues / 2);
    if constexpr (sizeof(T) == 4) return static_cast<T>(bits);
    const std::uint64_t high = bits; // with more bits than a double has
    return static_cast<T>(high << 32 | random_bits(member + 1000, element));
  } else {
    if (values == Values::exact)
      return T(static_cast<float>(bits % kExactValues) - static_cast<float>(kExactValues / 2));
    // More bits than a float has, and exponents that differ: two additions round differently in another order.
    const std::uint32_t more = random_bits(member + 1000, element);
    const double mantissa = 2 * (static_cast<double>(bits) + static_cast<double>(more) * 0x1p-32) * 0x1p-32 - 1;
    return T(std::ldexp(mantissa, static_cast<int>(more % 24) - 12));
  }
}

/// value(i) for each i below `elements`. A pointer, because push_back() calls functions for each element without
/// optimization.
template <class T, class Value>
std::vector<T> elements_of(std::int64_t elements, const Value& value) {
  std::vector<T> out(static_cast<std::size_t>(elements));
  T* const at = out.data();
  for (std::int64_t i = 0; i < elements; ++i) at[i] = value(i);
  return out;
}

/// The elements of a member.
template <class T>
std::vector<T> input_of(int member, std::int64_t elements, Values values = Values::exact) {
  return elements_of<T>(elements, [member, values](std::int64_t i) { return value_of<T>(member, i, values); });
}

/// The type in which elements are added.
template <class T>
struct SumType {
  using type = std::conditional_t<sizeof(T) == 2, float, T>;
};

template <class Sum>
Sum combined(Sum a, Sum b, Reduce reduce) {
  if (reduce == Reduce::max) return std::max(a, b);
  if constexpr (std::is_integral_v<Sum>) {
    using Bits = std::make_unsigned_t<Sum>;
    return static_cast<Sum>(static_cast<Bits>(a) + static_cast<Bits>(b)); // wraps
  } else {
    return a + b;
  }
}

/// The reduction over the members in rank order: the exact bits.
template <class T>
std::vector<T> reduced(int members, std::int64_t elements, Reduce reduce, Values values) {
  using Sum = typename SumType<T>::type;
  return elements_of<T>(elements, [members, reduce, values](std::int64_t i) {
    Sum sum = static_cast<Sum>(value_of<T>(0, i, values));
    for (int member = 1; member < members; ++member)
      sum = combined(sum, static_cast<Sum>(value_of<T>(member, i, values)), reduce);
    return T(sum);
  });
}

template <class T>
std::string element_text(T value) {
  if constexpr (sizeof(T) == 2) {
    return to_text(static_cast<float>(value));
  } else {
    return to_text(value);
  }
}

/// Compares bits; a difference is a failure of the rank with the first wrong element.
template <class T>
void expect_elements(Rank& rank, const std::string& what, const TensorView& view, const std::vector<T>& expected) {
  const std::vector<T> got = rank.values<T>(view);
  if (expected.empty() || std::memcmp(got.data(), expected.data(), expected.size() * sizeof(T)) == 0) return;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof(T)) == 0) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return;
  rank.expect(false, "{}: element {} is {}, must be {}; {} of {} elements are wrong", what, first,
              element_text(got[first]), element_text(expected[first]), wrong, expected.size());
}

} // namespace triax::conformance
