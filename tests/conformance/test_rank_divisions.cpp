// SPDX-License-Identifier: Apache-2.0
// Divisions of parameters over ranks, and logs of collectives, with which optimizers are checked.
#include <gtest/gtest.h>

#include <vector>

#include "optimizer/collective_log.hpp"
#include "optimizer/fixed_parameters.hpp"
#include "triax/error.hpp"

namespace triax::conformance {
namespace {

constexpr RankDivision kDivisions[] = {
    {.tensor = 2}, {.data = 2}, {.data = 2, .sharded = true}, {.tensor = 2, .data = 2}, {2, 2, true}};

/// How often ranks have each element of a parameter: all of their elements, or those that they own.
std::vector<int> counts(const RankDivision& division, std::size_t parameter, bool only_owned) {
  std::vector<int> out(static_cast<std::size_t>(whole_parameters()[parameter].elements));
  for (int rank = 0; rank < division.layout().world_size(); ++rank) {
    const Part part = parts_of_rank(division, rank)[parameter];
    const bool all = !only_owned || part.group.empty();
    const std::int64_t begin = all ? 0 : part.owned_first - part.first;
    const std::int64_t end = all ? part.elements : begin + part.owned_elements;
    for (std::int64_t i = begin; i < end; ++i) ++out.at(static_cast<std::size_t>(part.global(i)));
  }
  return out;
}

TEST(RankDivisions, GiveEachElementToARank) {
  for (const RankDivision& division : kDivisions)
    for (std::size_t i = 0; i < whole_parameters().size(); ++i)
      for (const int count : counts(division, i, false)) EXPECT_GE(count, 1) << to_text(division);
}

/// A sum over owned() of the group, and then of the axes that cut it, is that of the whole parameter.
TEST(RankDivisions, OwnEachElementOnceOnTheRanksThatAdd) {
  for (const RankDivision& division : kDivisions)
    for (std::size_t i = 0; i < whole_parameters().size(); ++i) {
      const Part part = parts_of_rank(division, 0)[i];
      const int ranks = division.layout().world_size();
      const int adding = part.members * (part.spec.cuts.empty() ? 1 : division.tensor);
      for (const int count : counts(division, i, true)) EXPECT_EQ(count, ranks / adding) << to_text(division);
    }
}

TEST(RankDivisions, HaveCutsOfBothDimensionsPaddingAndEmptyParts) {
  const std::vector<Part> parts = parts_of_rank({.tensor = 2, .data = 2, .sharded = true}, 3);
  EXPECT_EQ(parts[0].spec.local, (Shape{4, 13}));
  EXPECT_EQ(parts[0].spec.cuts.front(), (Cut{"tensor", 0, 4, 7}));
  EXPECT_EQ(parts[3].spec.cuts.front(), (Cut{"tensor", 1, 63, 126}));
  EXPECT_EQ(parts[2].elements, 0);
  EXPECT_EQ(parts[1].group, "data");
  EXPECT_EQ(parts[4].group, "tensor*data");
}

const Posted kOverData{"data", "all_gather of 1 f64"}, kOverTensor{"tensor", "all_gather of 1 f64"};

TEST(CollectiveLogs, RefuseCallsThatTheDryRunDoesNotHave) {
  CollectiveLog log({kOverData, kOverTensor});
  for (int step = 0; step < 2; ++step) {
    log.add(kOverData);
    log.add(kOverTensor);
    EXPECT_THROW(log.add(kOverTensor), Error);
    log.end_step();
  }
  EXPECT_THROW(log.add(kOverTensor), Error);
}

TEST(CollectiveLogs, RefuseStepsThatPostLess) {
  CollectiveLog log({kOverData, kOverTensor});
  log.add(kOverData);
  EXPECT_THROW(log.end_step(), Error);
}

TEST(CollectiveLogs, ShowAGroupTheOrderOfAllCalls) {
  const std::vector<Posted> one{kOverData, kOverTensor}, other{kOverData, {"tensor", "all_gather of 2 f64"}},
      reversed{kOverTensor, kOverData};
  EXPECT_EQ(seen_by_group(one, "data"), seen_by_group(other, "data"));
  EXPECT_NE(seen_by_group(one, "tensor"), seen_by_group(other, "tensor"));
  EXPECT_NE(seen_by_group(one, "data"), seen_by_group(reversed, "data"));
}

} // namespace
} // namespace triax::conformance
