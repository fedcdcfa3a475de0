// SPDX-License-Identifier: Apache-2.0
// The kernels' functions for conversion and addition, run on the host, give the same bits as the host device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "triax/cuda/rounding.hpp"
#include "triax/device.hpp"
#include "triax/random.hpp"
#include "triax/text.hpp"

namespace triax::cuda {
namespace {

template <class T>
constexpr DType kType = DType::f32;
template <>
constexpr DType kType<double> = DType::f64;
template <>
constexpr DType kType<Bf16> = DType::bf16;
template <>
constexpr DType kType<F16> = DType::f16;
template <>
constexpr DType kType<std::int32_t> = DType::i32;
template <>
constexpr DType kType<std::int64_t> = DType::i64;
template <>
constexpr DType kType<std::uint8_t> = DType::u8;

/// Random bits, and values near rounding boundaries.
template <class T>
std::vector<T> samples() {
  std::vector<T> out;
  const PhiloxKey key = philox_key(7, RandomPurpose::test);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const PhiloxBlock words = philox_at(key, 4 * i, 0, 0);
    T value{};
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof value);
    out.push_back(value);
  }
  return out;
}

template <class T>
void add_near_ties(std::vector<T>& values) {
  if constexpr (std::is_floating_point_v<T>) {
    for (const double base :
         {1.0, 2.5, 255.0, 65504.0, 65519.9, 65520.0, 1e-7, 6e-8, 3e-8, 3.3e38, 0.5, 2147483647.5}) {
      for (const double step : {0.0, 0x1p-8, 0x1p-9, 0x1p-11, 0x1p-12, 0x1p-30, 0x1p-50}) {
        for (const double sign : {1.0, -1.0}) values.push_back(static_cast<T>(sign * base * (1 + step)));
      }
    }
    values.insert(values.end(), {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(), T{0}, -T{0}});
  } else if constexpr (sizeof(T) == 8) {
    for (const std::int64_t base : {std::int64_t{257} << 54, std::int64_t{1} << 53, std::int64_t{2049} << 51})
      for (const std::int64_t step : {-1, 0, 1}) values.insert(values.end(), {base + step, -(base + step)});
  }
}

template <class T>
bool same(T a, T b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  if constexpr (!std::is_integral_v<T>) return std::isnan(static_cast<double>(a)) && std::isnan(static_cast<double>(b));
  return false;
}

template <class To, class From>
void expect_converted_alike(Device& host, Stream& stream) {
  std::vector<From> from = samples<From>();
  add_near_ties(from);
  std::vector<To> want(from.size());
  const Shape shape{static_cast<std::int64_t>(from.size())};
  host.convert({want.data(), kType<To>, shape}, {from.data(), kType<From>, shape}, stream);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (same(converted<To>(from[i]), want[i])) continue;
    if (wrong++ == 0) first = i;
  }
  EXPECT_EQ(wrong, 0u) << name_of(kType<From>) << " to " << name_of(kType<To>) << ": "
                       << triax::to_text(static_cast<double>(from[first]));
}

template <class To>
void expect_all_to(Device& host, Stream& stream) {
  expect_converted_alike<To, float>(host, stream);
  expect_converted_alike<To, double>(host, stream);
  expect_converted_alike<To, Bf16>(host, stream);
  expect_converted_alike<To, F16>(host, stream);
  expect_converted_alike<To, std::int32_t>(host, stream);
  expect_converted_alike<To, std::int64_t>(host, stream);
  expect_converted_alike<To, std::uint8_t>(host, stream);
}

TEST(Rounding, BetweenEveryTwoTypesIsTheHostDevices) {
  const auto host = make_host_device();
  const auto stream = host->make_stream("test");
  expect_all_to<float>(*host, *stream);
  expect_all_to<double>(*host, *stream);
  expect_all_to<Bf16>(*host, *stream);
  expect_all_to<F16>(*host, *stream);
  expect_all_to<std::int32_t>(*host, *stream);
  expect_all_to<std::int64_t>(*host, *stream);
  expect_all_to<std::uint8_t>(*host, *stream);
}

TEST(Rounding, OfEveryBf16AndF16IsExact) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Bf16 bf16;
    bf16.bits = static_cast<std::uint16_t>(bits);
    F16 f16;
    f16.bits = static_cast<std::uint16_t>(bits);
    EXPECT_TRUE(same(value_of(bf16), static_cast<float>(bf16))) << bits;
    EXPECT_TRUE(same(value_of(f16), static_cast<float>(f16))) << bits;
    EXPECT_TRUE(same(rounded<Bf16>(value_of(bf16)), bf16)) << bits;
    EXPECT_TRUE(same(rounded<F16>(value_of(f16)), f16)) << bits;
  }
}

template <class T>
void expect_added_alike(Device& host, Stream& stream) {
  std::vector<T> from = samples<T>();
  std::vector<T> to(from.rbegin(), from.rend());
  const std::vector<T> before = to;
  const Shape shape{static_cast<std::int64_t>(from.size())};
  host.add({to.data(), kType<T>, shape}, {from.data(), kType<T>, shape}, stream);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) wrong += same(sum_of(before[i], from[i]), to[i]) ? 0 : 1;
  EXPECT_EQ(wrong, 0u) << name_of(kType<T>);
}

TEST(Rounding, SumsAreTheHostDevices) {
  const auto host = make_host_device();
  const auto stream = host->make_stream("test");
  expect_added_alike<float>(*host, *stream);
  expect_added_alike<double>(*host, *stream);
  expect_added_alike<Bf16>(*host, *stream);
  expect_added_alike<F16>(*host, *stream);
  expect_added_alike<std::int32_t>(*host, *stream);
  expect_added_alike<std::int64_t>(*host, *stream);
  expect_added_alike<std::uint8_t>(*host, *stream);
}

} // namespace
} // namespace triax::cuda
