// SPDX-License-Identifier: Apache-2.0
// How two sides that took turns differ: the ratio of their times, with a confidence interval.
//
// The sides take turns in rounds of A B B A or B A A B, so that a machine that becomes slower at a constant rate slows
// both sides equally. The sample is a round: the logarithm of the ratio of the two sides' times in it. The interval is
// Student's over the rounds, of the mean without the fifth of the rounds with the largest ratios and the fifth with the
// smallest (Yuen, "The two-sample trimmed t for unequal population variances", Biometrika 61, 1974; here for one
// sample): rounds that another program disturbed do not count. A bootstrap over so few rounds gives intervals that are
// too narrow (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13), and needs random numbers.
//
// A difference counts as significant only with a confidence of 99 %, not with the 95 % of the interval that is printed.
// So a comparison of a thing with itself finds a difference once in a hundred times. And it must be above half a
// percent: on a quiet machine, two equal runs had ratios of 0.995 to 1.006, and an interval that excludes 1 in one of
// six comparisons (benchmarks/README.md). More rounds do not average out what two processes differ in while they live.
//
// Threads: pure functions. Errors: Error if there are fewer than two rounds, or a time is not positive and finite.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace triax::compare {

/// The times of both sides in a round, such as the mean of its turns; in any unit.
struct Round {
  double a = 0, b = 0;
};

struct Ratio {
  double value = 1;         // time of B / time of A, trimmed geometric mean over the rounds
  double low = 1, high = 1; // its 95 % confidence interval
  double low_99 = 1, high_99 = 1;
  bool is_significant = false; // the 99 % interval has no ratio within half a percent of 1
  double deviation = 0;        // standard error of the logarithm of `value`, times the square root of the rounds
  std::int64_t rounds = 0;
};

Ratio paired_ratio(std::span<const Round> rounds);

/// The fewest rounds of a comparison: with fewer, the interval is too wide to show anything.
inline constexpr std::int64_t kMinRounds = 4;
inline constexpr std::int64_t kMaxRounds = 100'000;

/// How many rounds show a ratio of 1 + `difference` in 95 of 100 comparisons, if rounds scatter as in `seen`. Empty if
/// that is more than kMaxRounds.
std::optional<std::int64_t> rounds_to_show(const Ratio& seen, double difference);

/// The sides of the turns of a round, which is counted from 0; A is 0: A B B A, then B A A B, and so on.
constexpr std::array<std::size_t, 4> turns_of_round(std::int64_t round) {
  if (round % 2 == 0) return {0, 1, 1, 0};
  return {1, 0, 0, 1};
}

/// The rounds of the times of all turns of both sides: the mean of each side's two turns in a round.
std::vector<Round> rounds_of(std::span<const double> a, std::span<const double> b);

/// The median; of an even number of values, the mean of the two in the middle. Not of an empty list.
double median(std::span<const double> values);
/// Between the values in sorted order, linearly; 0: the smallest, 1: the largest. Not of an empty list.
double quantile(std::span<const double> values, double share);

} // namespace triax::compare
