// SPDX-License-Identifier: Apache-2.0
// f16 and bf16: every value and every tie.
#include <gmock/gmock.h>

#include <limits>

#include "triax/half.hpp"

namespace triax {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(F16, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    F16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    if (std::isnan(static_cast<float>(half))) {
      EXPECT_TRUE(std::isnan(static_cast<float>(F16(static_cast<float>(half)))));
    } else {
      ASSERT_EQ(F16(static_cast<float>(half)).bits, bits);
    }
  }
}

TEST(Bf16, EveryValueComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Bf16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    if (std::isnan(static_cast<float>(half))) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Bf16(static_cast<float>(half)))));
    } else {
      ASSERT_EQ(Bf16(static_cast<float>(half)).bits, bits);
    }
  }
}

/// Between each two neighbours: below the midpoint rounds down, above it up, and at it to the even value.
template <class Half>
void check_all_ties(std::uint32_t infinity_bits) {
  for (std::uint32_t bits = 0; bits + 1 < infinity_bits; ++bits) {
    Half low, high;
    low.bits = static_cast<std::uint16_t>(bits);
    high.bits = static_cast<std::uint16_t>(bits + 1);
    const float middle = (static_cast<float>(low) / 2 + static_cast<float>(high) / 2);
    const std::uint16_t even = bits % 2 == 0 ? low.bits : high.bits;
    ASSERT_EQ(Half(middle).bits, even) << bits;
    ASSERT_EQ(Half(-middle).bits, even | 0x8000u) << bits;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0f)).bits, low.bits) << bits;
    ASSERT_EQ(Half(std::nextafter(middle, kInfinity)).bits, high.bits) << bits;
    // In double, the values next to the midpoint are much closer to it: rounding twice would treat them as ties.
    const double exact = middle;
    ASSERT_EQ(Half(std::nextafter(exact, 0.0)).bits, low.bits) << bits;
    ASSERT_EQ(Half(std::nextafter(exact, 1e300)).bits, high.bits) << bits;
  }
}

TEST(F16, RoundsToNearestEven) {
  check_all_ties<F16>(0x7C00);
}
TEST(Bf16, RoundsToNearestEven) {
  check_all_ties<Bf16>(0x7F80);
}

TEST(F16, OverflowsToInfinity) {
  EXPECT_EQ(F16(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(F16(65519.99f).bits, 0x7BFF);
  EXPECT_EQ(F16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(F16(-1e30).bits, 0xFC00);
  EXPECT_EQ(F16(kInfinity).bits, 0x7C00);
}

TEST(Bf16, OverflowsToInfinity) {
  EXPECT_EQ(Bf16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(Bf16(1e300).bits, 0x7F80);
  EXPECT_EQ(Bf16(-kInfinity).bits, 0xFF80);
}

} // namespace
} // namespace triax
