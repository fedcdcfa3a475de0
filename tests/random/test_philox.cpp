// SPDX-License-Identifier: Apache-2.0
// Philox gives the published results of Random123; keys, counters, uniform numbers and dropout thresholds.
#include <gmock/gmock.h>

#include <set>

#include "triax/random.hpp"

namespace triax {
namespace {

using testing::ElementsAre;

TEST(Philox, KnownAnswers) {
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(philox({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(Philox, IsAConstantExpression) {
  static_assert(philox({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5u);
}

TEST(Philox, CounterHoldsElementSiteAndSample) {
  const PhiloxKey key = philox_key(7, RandomPurpose::dropout);
  const std::uint64_t element = (std::uint64_t{3} << 34) + 5 * 4 + 1;
  EXPECT_EQ(philox_at(key, element, 35, 12), philox({5, 3, 35, 12}, key));
  EXPECT_EQ(philox_at(key, element + 2, 35, 12), philox_at(key, element, 35, 12)) << "four elements share a block";
  EXPECT_NE(philox_at(key, element + 3, 35, 12), philox_at(key, element, 35, 12));
}

TEST(Philox, PurposesAndSeedsHaveTheirOwnKeys) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> keys;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const RandomPurpose purpose :
         {RandomPurpose::weights, RandomPurpose::dropout, RandomPurpose::data, RandomPurpose::test}) {
      const PhiloxKey key = philox_key(seed, purpose);
      keys.insert({key.lo, key.hi});
    }
  }
  EXPECT_EQ(keys.size(), 400u);
  EXPECT_NE(philox_key(std::uint64_t{1} << 32, RandomPurpose::test), philox_key(0, RandomPurpose::test));
}

TEST(Uniform, IsInTheUnitIntervalWithoutItsEnd) {
  EXPECT_EQ(uniform(0), 0.0f);
  EXPECT_EQ(uniform(0x80000000u), 0.5f);
  EXPECT_EQ(uniform(0xFFFFFFFFu), 1.0f - 0x1p-24f);
}

TEST(DropThreshold, DropsThePartAskedFor) {
  EXPECT_EQ(drop_threshold(0.0f), 0u);
  EXPECT_EQ(drop_threshold(0.5f), 0x80000000u);
  EXPECT_EQ(drop_threshold(1.0f), 0xFFFFFFFFu);
  const PhiloxKey key = philox_key(1, RandomPurpose::dropout);
  int dropped = 0;
  for (std::uint64_t block = 0; block < 25000; ++block) {
    for (const std::uint32_t word : philox_at(key, 4 * block, 16, 0)) dropped += word < drop_threshold(0.1f);
  }
  EXPECT_NEAR(dropped, 10000, 400); // four standard deviations; the numbers are deterministic
}

} // namespace
} // namespace triax
