// SPDX-License-Identifier: Apache-2.0
// The statistics of comparisons, on series of times whose distribution is known.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "compare/paired_ratio.hpp"
#include "triax/error.hpp"

namespace triax::compare {
namespace {

/// Rounds of a machine whose speed wanders, with B slower than A by this factor.
std::vector<Round> measured(std::mt19937_64& random, int rounds, double ratio, double noise) {
  std::normal_distribution<double> scatter(0, noise / std::sqrt(2)), wander(0, 0.05);
  std::vector<Round> out;
  double machine = 0;
  for (int i = 0; i < rounds; ++i) {
    machine += wander(random);
    out.push_back({std::exp(machine + scatter(random)), ratio * std::exp(machine + scatter(random))});
  }
  return out;
}

/// How many of 1000 comparisons show a difference.
int shown(int rounds, double ratio, double noise) {
  std::mt19937_64 random(7);
  int out = 0;
  for (int i = 0; i < 1000; ++i) out += paired_ratio(measured(random, rounds, ratio, noise)).is_significant ? 1 : 0;
  return out;
}

TEST(PairedRatio, HasTheIntervalOfStudent) {
  // Logarithms 0.1, 0.2, 0.3: mean 0.2, deviation 0.1; t(97.5 %, 2) = 4.3027 (any table of Student's distribution).
  const std::vector<Round> rounds = {{1, std::exp(0.1)}, {2, 2 * std::exp(0.2)}, {3, 3 * std::exp(0.3)}};
  const Ratio out = paired_ratio(rounds);
  EXPECT_NEAR(out.value, std::exp(0.2), 1e-12);
  EXPECT_NEAR(out.deviation, 0.1, 1e-12);
  EXPECT_NEAR(std::log(out.high / out.value), 4.30265 * 0.1 / std::sqrt(3), 1e-5);
  EXPECT_NEAR(std::log(out.value / out.low), 4.30265 * 0.1 / std::sqrt(3), 1e-5);
  EXPECT_EQ(out.rounds, 3);
  EXPECT_FALSE(out.is_significant) << "t(99.5 %, 2) = 9.925: the 99 % interval contains 1";
}

TEST(PairedRatio, LeavesOutAFifthAtEachEnd) {
  // Of ten rounds six count: logarithms 0.1 to 0.6. The variance has those left out at the ends of these; t(97.5 %, 5).
  std::vector<Round> rounds;
  for (const double log : {-5.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 9.0}) rounds.push_back({1, std::exp(log)});
  const Ratio out = paired_ratio(rounds);
  EXPECT_NEAR(std::log(out.value), 0.35, 1e-12);
  const double squares = 6 * 0.0625 + 2 * (0.0225 + 0.0025); // three times 0.25 from 0.35 at each end, 0.15 and 0.05
  EXPECT_NEAR(std::log(out.high / out.value), 2.57058 * std::sqrt(squares / (6 * 5)), 1e-5);
}

TEST(PairedRatio, FindsADifferenceAlthoughSomeRoundsAreDisturbed) {
  std::mt19937_64 random(5);
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<Round> rounds = measured(random, 20, 1.05, 0.02);
    for (const std::size_t disturbed : {std::size_t{3}, std::size_t{11}, std::size_t{12}}) rounds[disturbed].a *= 2;
    found += paired_ratio(rounds).is_significant ? 1 : 0;
  }
  EXPECT_GT(found, 195);
}

TEST(PairedRatio, EqualRoundsShowADifferenceOnlyIfThereIsOne) {
  EXPECT_FALSE(paired_ratio(std::vector<Round>(4, {2, 2})).is_significant);
  EXPECT_TRUE(paired_ratio(std::vector<Round>(4, {2, 2.5})).is_significant);
}

TEST(PairedRatio, OfAThingWithItselfShowsADifferenceOnceInAHundredTimes) {
  EXPECT_LT(shown(8, 1, 0.03), 20);
  EXPECT_LT(shown(20, 1, 0.5), 20) << "on a machine that is busy";
}

TEST(PairedRatio, ItsIntervalHoldsTheTruthInNineteenOfTwentyComparisons) {
  std::mt19937_64 random(11);
  int held = 0;
  for (int i = 0; i < 1000; ++i) {
    const Ratio out = paired_ratio(measured(random, 8, 1.1, 0.03));
    held += out.low <= 1.1 && 1.1 <= out.high ? 1 : 0;
  }
  EXPECT_NEAR(held, 950, 25);
}

TEST(PairedRatio, FindsADifferenceWithTheNumberOfRoundsThatItNames) {
  std::mt19937_64 random(3);
  const Ratio seen = paired_ratio(measured(random, 100'000, 1, 0.03)); // whose deviation is nearly exact
  for (const double difference : {0.01, 0.02, 0.05}) {
    const auto rounds = static_cast<int>(rounds_to_show(seen, difference).value());
    EXPECT_NEAR(shown(rounds, 1 + difference, 0.03), 950, 30) << difference << " with " << rounds << " rounds";
  }
}

TEST(PairedRatio, ADifferenceOfTwoEqualProcessesIsNotShown) {
  const auto of = [](double ratio) { return paired_ratio(std::vector<Round>(20, {1, ratio})).is_significant; };
  EXPECT_FALSE(of(1.004));
  EXPECT_FALSE(of(0.996));
  EXPECT_TRUE(of(1.006));
  EXPECT_TRUE(of(0.994));
}

TEST(PairedRatio, NamesNoNumberOfRoundsThatCannotBeAskedFor) {
  EXPECT_EQ(rounds_to_show(Ratio{.deviation = 0}, 0.01), kMinRounds);
  EXPECT_FALSE(rounds_to_show(Ratio{.deviation = 10}, 0.01));
}

TEST(PairedRatio, RejectsWhatHasNoRatio) {
  EXPECT_THROW(paired_ratio(std::vector<Round>{{1, 1}}), Error);
  EXPECT_THROW(paired_ratio(std::vector<Round>{{1, 1}, {0, 1}}), Error);
  EXPECT_THROW(paired_ratio(std::vector<Round>{{1, 1}, {1, std::nan("")}}), Error);
}

TEST(PairedRatio, MedianOfEvenAndOddLists) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
  EXPECT_EQ(quantile(std::vector<double>{0, 10, 20}, 0.05), 1);
  EXPECT_EQ(quantile(std::vector<double>{0, 10, 20}, 1), 20);
}

} // namespace
} // namespace triax::compare
