// SPDX-License-Identifier: Apache-2.0
// Which posts of a communicator have the fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "fault.hpp"

namespace triax::comm_faulty {
namespace {

using testing::ElementsAre;

Group group_of(int index, const std::string& axis = "tensor") {
  return {axis, axis + ".0", {4, 5, 6}, index};
}

/// Numbers of the posts with the fault among the first `count`.
std::vector<std::uint64_t> injected(const FaultOptions& options, const Group& group, int count) {
  InjectionPlan plan(options, group);
  std::vector<std::uint64_t> out;
  for (int i = 0; i < count; ++i)
    if (const Injection injection = plan.next(true); injection.is_injected) out.push_back(injection.post);
  return out;
}

TEST(InjectionPlan, HasOnePostOfTheSelectedRankAndAxis) {
  const FaultOptions options{.fault = Fault::drop, .rank = 5, .axis = "tensor", .at = 3};
  EXPECT_THAT(injected(options, group_of(1), 10), ElementsAre(3u));
  EXPECT_THAT(injected(options, group_of(0), 10), ElementsAre());
  EXPECT_THAT(injected(options, group_of(1, "data"), 10), ElementsAre());
}

TEST(InjectionPlan, DependsOnSeedRankAndGroupOnly) {
  FaultOptions options{.fault = Fault::delay, .probability = 0.5, .seed = 7};
  const std::vector<std::uint64_t> first = injected(options, group_of(0), 1000);
  EXPECT_GT(first.size(), 400u);
  EXPECT_LT(first.size(), 600u);
  EXPECT_EQ(injected(options, group_of(0), 1000), first);
  EXPECT_NE(injected(options, group_of(1), 1000), first);
  EXPECT_NE(injected(options, group_of(0, "data"), 1000), first);
  options.seed = 8;
  EXPECT_NE(injected(options, group_of(0), 1000), first);
}

TEST(InjectionPlan, HasAllOrNoPostsAtTheEndsOfTheProbability) {
  FaultOptions options{.fault = Fault::delay, .probability = 1};
  EXPECT_EQ(injected(options, group_of(0), 1000).size(), 1000u);
  options.probability = 0;
  EXPECT_TRUE(injected(options, group_of(0), 1000).empty());
  options = {};
  EXPECT_TRUE(injected(options, group_of(0), 1000).empty());
}

TEST(InjectionPlan, CountsPostsThatReceiveForACorruption) {
  const FaultOptions options{.fault = Fault::corrupt, .at = 2};
  InjectionPlan plan(options, group_of(0));
  EXPECT_FALSE(plan.next(true).is_injected);
  EXPECT_FALSE(plan.next(false).is_injected);
  const Injection third = plan.next(true);
  EXPECT_TRUE(third.is_injected);
  EXPECT_EQ(third.post, 3u);
}

} // namespace
} // namespace triax::comm_faulty
