// SPDX-License-Identifier: Apache-2.0
#include "bench/sides.hpp"

#include <numeric>

namespace triax::bench {

namespace {

bool are_equal(const Side& a, const Side& b) {
  return a.choice.library == b.choice.library && a.set == b.set;
}

} // namespace

Refusals check_sides(const std::vector<Side>& sides, std::int64_t rounds, bool may_be_equal, std::string_view table) {
  Refusals out;
  if (sides.size() < 2) return out;
  if (rounds < compare::kMinRounds)
    out.add(make_refusal(ErrorCode::kOutOfRange, {"--rounds"},
                         "--rounds must be at least {} to compare two sides, got {}", compare::kMinRounds, rounds)
                .with_hint("fewer rounds have no useful confidence interval"));
  if (!may_be_equal && are_equal(sides[0], sides[1]))
    out.add(make_refusal(ErrorCode::kConflict, {"--vs"}, "the two sides are equal: both are {} with the same options",
                         sides[0].choice.name)
                .with_hint("name another plugin with --vs, or give side B another option with --set-b {}.KEY=VALUE; "
                           "with --same, equal sides show how much this machine varies",
                           table));
  return out;
}

std::vector<std::size_t> turns_of_round(std::size_t sides, std::int64_t round) {
  if (sides == 1) return {0};
  const std::array<std::size_t, 4> turns = compare::turns_of_round(round);
  return {turns.begin(), turns.end()};
}

double mean_of(const std::vector<double>& times) {
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

compare::Ratio ratio_of_turns(const std::vector<double>& a, const std::vector<double>& b) {
  return compare::paired_ratio(compare::rounds_of(a, b));
}

} // namespace triax::bench
