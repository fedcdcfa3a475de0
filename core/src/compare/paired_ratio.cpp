// SPDX-License-Identifier: Apache-2.0
#include "compare/paired_ratio.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::compare {

namespace {

constexpr double kInterval = 0.95, kShown = 0.99; // confidence
constexpr double kOfProcesses = 0.005;            // logarithm of a ratio that two equal processes may have
constexpr double kPower = 0.95;                   // probability that a difference is shown

constexpr std::int64_t kTrimmed = 5; // of this number of rounds, one is left out at each end

/// Rounds that are left out at each end.
std::int64_t trimmed(std::int64_t rounds) {
  return rounds / kTrimmed;
}

/// Rounds that count.
double kept(std::int64_t rounds) {
  return static_cast<double>(rounds - 2 * trimmed(rounds));
}

/// Student's quantile for an interval with this confidence on both sides.
double student(double confidence, std::int64_t rounds) {
  const boost::math::students_t distribution(kept(rounds) - 1);
  return boost::math::quantile(distribution, (1 + confidence) / 2);
}

double log_ratio(const Round& round) {
  const double out = std::log(round.b / round.a);
  if (!(round.a > 0 && round.b > 0) || !std::isfinite(out))
    throw Error(text("times of {} and {} have no ratio", round.a, round.b), "comparison");
  return out;
}

} // namespace

Ratio paired_ratio(std::span<const Round> rounds) {
  const std::int64_t count = std::ssize(rounds), least = trimmed(count), most = count - least - 1;
  if (count < 2) throw Error(text("{} rounds have no confidence interval", count), "comparison");
  std::vector<double> logs;
  for (const Round& round : rounds) logs.push_back(log_ratio(round));
  std::ranges::sort(logs);
  const auto at = [&logs](std::int64_t index) { return logs[static_cast<std::size_t>(index)]; };
  // The mean of the rounds that count; and the variance with those left out moved to the nearest that count.
  double mean = 0, moved_mean = 0, squares = 0;
  const auto moved = [&](std::int64_t index) { return at(std::clamp(index, least, most)); };
  for (std::int64_t i = least; i <= most; ++i) mean += at(i) / kept(count);
  for (std::int64_t i = 0; i < count; ++i) moved_mean += moved(i) / static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i) squares += std::pow(moved(i) - moved_mean, 2);
  const double error = std::sqrt(squares / (kept(count) * (kept(count) - 1)));
  const double width = student(kInterval, count) * error;
  Ratio out;
  out.rounds = count;
  out.deviation = error * std::sqrt(static_cast<double>(count));
  out.value = std::exp(mean);
  out.low = std::exp(mean - width);
  out.high = std::exp(mean + width);
  const double width_99 = student(kShown, count) * error;
  out.low_99 = std::exp(mean - width_99);
  out.high_99 = std::exp(mean + width_99);
  out.is_significant = std::abs(mean) > width_99 + kOfProcesses;
  return out;
}

/// The number n for which (t(99 %, n) + t(95 %, n) one-sided) deviation / sqrt(n) is at most the difference.
std::optional<std::int64_t> rounds_to_show(const Ratio& seen, double difference) {
  const double sought = std::log1p(difference) - kOfProcesses;
  for (std::int64_t rounds = kMinRounds; rounds <= kMaxRounds; rounds += std::max<std::int64_t>(1, rounds / 50)) {
    const double needed = (student(kShown, rounds) + student(2 * kPower - 1, rounds)) * seen.deviation;
    if (needed <= sought * std::sqrt(static_cast<double>(rounds))) return rounds;
  }
  return std::nullopt;
}

std::vector<Round> rounds_of(std::span<const double> a, std::span<const double> b) {
  std::vector<Round> out;
  for (std::size_t i = 0; i + 1 < std::min(a.size(), b.size()); i += 2)
    out.push_back({(a[i] + a[i + 1]) / 2, (b[i] + b[i + 1]) / 2});
  return out;
}

double median(std::span<const double> values) {
  return quantile(values, 0.5);
}

double quantile(std::span<const double> values, double share) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto before = static_cast<std::size_t>(at);
  const std::size_t after = std::min(before + 1, sorted.size() - 1);
  return std::lerp(sorted[before], sorted[after], at - static_cast<double>(before));
}

} // namespace triax::compare
