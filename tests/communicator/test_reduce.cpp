// SPDX-License-Identifier: Apache-2.0
// reduce_members() has the bits of one addition or comparison after another, in the order of the sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "triax/element_type.hpp"
#include "triax/random.hpp"
#include "triax/reduce.hpp"

namespace triax::test {
namespace {

/// The accumulator of a type.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, Bf16> || std::is_same_v<T, F16>, float, T>;

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) { // wraps
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <class T>
std::vector<T> expected(Reduce reduce, const std::vector<std::vector<T>>& sources) {
  std::vector<T> out(sources.front().size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto value = static_cast<Sum<T>>(sources.front()[i]);
    for (std::size_t member = 1; member < sources.size(); ++member) {
      const auto other = static_cast<Sum<T>>(sources[member][i]);
      value = reduce == Reduce::sum ? add(value, other) : std::max(value, other);
    }
    out[i] = T(value);
  }
  return out;
}

/// Any bits but NaNs: zeros of both signs, subnormal numbers, infinities, values that overflow when added.
template <class T>
std::vector<T> draw(std::size_t elements, std::uint32_t member) {
  std::vector<T> out(elements);
  const PhiloxKey key = philox_key(7, RandomPurpose::test);
  for (std::size_t i = 0; i < elements; ++i) {
    const PhiloxBlock block = philox_at(key, i, member, 0);
    std::memcpy(static_cast<void*>(&out[i]), &block, sizeof(T));
    if constexpr (!std::is_integral_v<T>) {
      const auto value = static_cast<Sum<T>>(out[i]);
      if (value != value) out[i] = T(Sum<T>(1));
    }
  }
  return out;
}

template <class T>
std::vector<T> reduced(Reduce reduce, const std::vector<std::vector<T>>& sources, std::vector<T>& out) {
  std::vector<const std::byte*> bytes;
  for (const std::vector<T>& source : sources) bytes.push_back(reinterpret_cast<const std::byte*>(source.data()));
  reduce_members(dtype_of<T>(), reduce, bytes, reinterpret_cast<std::byte*>(out.data()),
                 static_cast<std::int64_t>(out.size()));
  return out;
}

/// Equal bits; infinities of opposite signs make a NaN, whose bits are not guaranteed.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  const auto same = [](const T& x, const T& y) {
    if (std::memcmp(&x, &y, sizeof(T)) == 0) return true;
    const auto of_x = static_cast<Sum<T>>(x), of_y = static_cast<Sum<T>>(y);
    return of_x != of_x && of_y != of_y;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

template <class T>
void check(Reduce reduce, std::size_t members, std::size_t elements) {
  SCOPED_TRACE(text("{} of {} elements of {} members, {}", name_of(dtype_of<T>()), elements, members,
                    reduce == Reduce::sum ? "sum" : "max"));
  std::vector<std::vector<T>> sources;
  for (std::size_t member = 0; member < members; ++member)
    sources.push_back(draw<T>(elements, static_cast<std::uint32_t>(member)));
  const std::vector<T> right = expected(reduce, sources);
  std::vector<T> apart(elements);
  EXPECT_TRUE(same_bits(reduced(reduce, sources, apart), right));
  for (std::size_t member = 0; member < members; ++member) {
    std::vector<std::vector<T>> copy = sources;
    EXPECT_TRUE(same_bits(reduced(reduce, copy, copy[member]), right)) << "in place of source " << member;
  }
}

TEST(Reduce, HasTheBitsOfOneStepAfterAnother) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64})
    with_type_among<float, double, Bf16, F16, std::int32_t, std::int64_t>(dtype, [](auto type) {
      for (const Reduce reduce : {Reduce::sum, Reduce::max})
        for (const std::size_t members : {1u, 2u, 3u, 5u})
          for (const std::size_t elements : {0u, 1u, 15u, 512u, 1300u}) // around blocks of 512
            check<decltype(type)>(reduce, members, elements);
    });
}

TEST(ElementType, IsFoundInBothDirections) {
  std::vector<DType> seen;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8})
    with_type(dtype, [&](auto type) {
      EXPECT_EQ(dtype_of<decltype(type)>(), dtype);
      EXPECT_EQ(sizeof(type), bytes_of(dtype));
      seen.push_back(dtype);
    });
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_FALSE((with_type_among<float, double>(DType::bf16, [](auto) { FAIL() << "bf16 is not listed"; })));
}

} // namespace
} // namespace triax::test
