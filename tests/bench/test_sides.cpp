// SPDX-License-Identifier: Apache-2.0
// Turns of two sides, what their times say, and the options of a side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/call_times.hpp"
#include "bench/side_plugins.hpp"
#include "support/installation.hpp"

namespace triax::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Sides, TakeTurns) {
  EXPECT_THAT(turns_of_round(1, 0), ElementsAre(0));
  EXPECT_THAT(turns_of_round(2, 0), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(turns_of_round(2, 1), ElementsAre(1, 0, 0, 1));
}

TEST(Sides, HaveTheRatioOfTheirRounds) {
  const compare::Ratio ratio = ratio_of_turns({1, 3, 1, 3, 1, 3, 2, 2}, {4, 4, 5, 3, 6, 2, 4, 4});
  EXPECT_DOUBLE_EQ(ratio.value, 2);
  EXPECT_EQ(ratio.rounds, 4);
  EXPECT_DOUBLE_EQ(mean_of({1, 2, 6}), 3);
}

TEST(CallTimes, HaveQuantiles) {
  CallTimes times;
  EXPECT_EQ(times.quantile(0.5), 0);
  for (int i = 100; i >= 0; --i) times.add(static_cast<float>(i));
  times.sort();
  EXPECT_EQ(times.quantile(0), 0);
  EXPECT_EQ(times.quantile(0.5), 50);
  EXPECT_EQ(times.quantile(0.99), 99);
  EXPECT_EQ(times.quantile(1), 100);
}

TEST(CallTimes, CountEachCall) {
  CallTimes times;
  int calls = 0;
  EXPECT_GE(time_calls(1000, times, [&] { ++calls; }), 0);
  EXPECT_EQ(calls, 1000);
}

struct LoadedSide {
  explicit LoadedSide(std::vector<config::Override> settings)
      : side(load_side(
            {"--plugin", test::plugin_file("kernels-reference").string(), "kernels", "kernels", std::move(settings)},
            plugin::FirstLoad::direct, refusals)) {}
  Refusals refusals;
  Side side;
};

TEST(Sides, LoadAPluginByItsFile) {
  const LoadedSide loaded({});
  EXPECT_TRUE(loaded.refusals.empty());
  EXPECT_EQ(loaded.side.choice.name, "kernels-reference");
}

TEST(Sides, RefuseOptionsThatThePluginLacks) {
  const LoadedSide loaded({{"kernels.threds", "2", "--set-b"}});
  ASSERT_EQ(loaded.refusals.size(), 1u);
  EXPECT_EQ(loaded.refusals.front().message, "--set-b kernels.threds: kernels-reference has no such option");
  EXPECT_THAT(loaded.refusals.front().hint, HasSubstr("triax plugins describe"));
}

TEST(Sides, RefusePluginsOfAnotherKind) {
  Refusals refusals;
  const Side side = load_side({"--vs", test::plugin_file("comm-local").string(), "kernels", "kernels", {}},
                              plugin::FirstLoad::direct, refusals);
  EXPECT_EQ(side.choice.library, nullptr);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_THAT(refusals.front().message, HasSubstr("is a plugin of kind communicator, not kernels"));
}

TEST(Sides, MustDiffer) {
  const LoadedSide loaded({});
  const std::vector<Side> equal = {loaded.side, loaded.side};
  EXPECT_THAT(check_sides(equal, 4, false, "kernels").front().message, HasSubstr("the two sides are equal"));
  EXPECT_TRUE(check_sides(equal, 4, true, "kernels").empty());
  std::vector<Side> different = equal;
  different[1].set.emplace_back("threads", "2");
  EXPECT_TRUE(check_sides(different, 4, false, "kernels").empty());
  EXPECT_THAT(check_sides(different, 3, false, "kernels").front().message, HasSubstr("--rounds must be at least 4"));
  EXPECT_TRUE(check_sides({loaded.side}, 1, false, "kernels").empty());
}

} // namespace
} // namespace triax::bench
