// SPDX-License-Identifier: Apache-2.0
// Balanced stages: the dynamic program is brute force on small cases, and what decides between equal times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "cost/balanced_split.hpp"
#include "cost/equal_block_split.hpp"

namespace triax::cost {
namespace {

using testing::ElementsAre;
using Split = std::vector<std::int64_t>;

/// Every split that gives each stage a layer.
void for_each_split(const SplitProblem& problem, const std::function<void(const Split&)>& visit) {
  Split split;
  const std::function<void(std::int64_t)> add = [&](std::int64_t left) {
    const int stage = static_cast<int>(split.size());
    const bool is_last = stage + 1 == problem.stages;
    const bool has_others = (stage == 0 && problem.has_before) || (is_last && problem.has_after);
    for (std::int64_t blocks = is_last ? left : 0; blocks <= left; ++blocks) {
      if (blocks == 0 && !has_others) continue;
      split.push_back(blocks);
      if (is_last) {
        visit(split);
      } else {
        add(left - blocks);
      }
      split.pop_back();
    }
  };
  add(static_cast<std::int64_t>(problem.blocks.size()));
}

SplitQuality best_of_all(const SplitProblem& problem) {
  std::optional<SplitQuality> best;
  for_each_split(problem, [&](const Split& split) {
    const SplitQuality quality = quality_of(problem, split);
    if (!best || quality < *best) best = quality;
  });
  return best.value();
}

TEST(BalancedSplit, IsBruteForce) {
  std::mt19937 random(1);
  const auto number = [&random](int below) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(below));
  };
  int uneven = 0;
  for (int round = 0; round < 600; ++round) {
    SplitProblem problem;
    const auto load = [&] { return StageLoad{number(6), number(4), number(3)}; }; // small numbers: many are equal
    problem.has_before = round % 3 != 0;
    problem.has_after = round % 4 != 0;
    if (problem.has_before) problem.before = load();
    if (problem.has_after) problem.after = load();
    problem.stages = 1 + static_cast<int>(number(5));
    const std::int64_t blocks = problem.stages + number(6);
    const bool is_alike = round % 2 == 0;
    for (std::int64_t block = 0; block < blocks; ++block)
      problem.blocks.push_back(is_alike && block > 0 ? problem.blocks.front() : load());
    const Split found = balanced_split(problem);
    EXPECT_EQ(quality_of(problem, found), best_of_all(problem)) << round;
    EXPECT_GE(excess_of(problem, even_split(problem)), excess_of(problem, found)) << round;
    uneven += found != even_split(problem);
  }
  EXPECT_GT(uneven, 100);
}

/// Not only as good: of equally good splits, it is the one of the dynamic programs.
TEST(BalancedSplit, OfEqualBlocksIsThatOfTheDynamicPrograms) {
  std::mt19937 random(2);
  const auto number = [&random](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  int uneven = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::int64_t most = round % 3 == 0 ? 3 : 1'000'000; // small numbers: many are equal, and some are 0
    const auto load = [&] { return StageLoad{number(most), number(most), number(most)}; };
    SplitProblem problem;
    problem.has_before = round % 5 != 0;
    problem.has_after = round % 7 != 0;
    if (problem.has_before) problem.before = load();
    if (problem.has_after) problem.after = load();
    problem.stages = 1 + static_cast<int>(number(12));
    problem.blocks.assign(static_cast<std::size_t>(problem.stages + number(40)), load());
    ASSERT_TRUE(has_equal_blocks(problem));
    const Split found = equal_block_split(problem);
    ASSERT_EQ(found, programmed_split(problem)) << round;
    uneven += found != even_split(problem);
  }
  EXPECT_GT(uneven, 500);
}

TEST(BalancedSplit, BlocksAreEqualIfAllLoadsAre) {
  SplitProblem problem{{{1, 2, 3}, {1, 2, 3}}, {}, {}, true, true, 1};
  EXPECT_TRUE(has_equal_blocks(problem));
  problem.blocks.back().flight_bytes = 4;
  EXPECT_FALSE(has_equal_blocks(problem));
}

SplitProblem alike(int blocks, int stages, StageLoad block, StageLoad before, StageLoad after) {
  return {std::vector<StageLoad>(static_cast<std::size_t>(blocks), block), before, after, true, true, stages};
}

TEST(BalancedSplit, GivesFewerBlocksToStagesWithOtherLayers) {
  EXPECT_THAT(balanced_split(alike(24, 4, {10, 1, 1}, {5, 1, 0}, {25, 1, 0})), ElementsAre(6, 7, 7, 4));
  EXPECT_THAT(balanced_split(alike(6, 3, {10, 1, 1}, {0, 1, 0}, {60, 1, 0})), ElementsAre(2, 4, 0));
  EXPECT_THAT(balanced_split(alike(5, 1, {10, 1, 1}, {5, 1, 0}, {5, 1, 0})), ElementsAre(5));
}

TEST(BalancedSplit, IsEvenWhereNothingIsBetter) {
  const SplitProblem problem = alike(8, 4, {10, 1, 0}, {1, 1, 0}, {1, 1, 0});
  EXPECT_EQ(balanced_split(problem), even_split(problem));
  EXPECT_THAT(even_split(alike(7, 3, {}, {}, {})), ElementsAre(3, 2, 2));
  EXPECT_EQ(excess_of(alike(7, 3, {}, {}, {}), {3, 2, 2}), 0);
}

/// The first stage has most microbatches in flight.
TEST(BalancedSplit, OfEqualTimesTakesLessMemory) {
  EXPECT_THAT(balanced_split(alike(5, 2, {10, 0, 8}, {}, {})), ElementsAre(2, 3));
  EXPECT_THAT(balanced_split(alike(5, 2, {10, 8, 0}, {}, {0, 8, 0})), ElementsAre(3, 2));
}

TEST(BalancedSplit, SaysHowFarTheSlowestStageIsAboveTheMean) {
  const SplitProblem problem = alike(4, 2, {10, 0, 0}, {}, {20, 0, 0});
  EXPECT_DOUBLE_EQ(excess_of(problem, {2, 2}), 1.0 / 3);
  EXPECT_DOUBLE_EQ(excess_of(problem, {3, 1}), 0);
  EXPECT_THAT(balanced_split(problem), ElementsAre(3, 1));
}

} // namespace
} // namespace triax::cost
