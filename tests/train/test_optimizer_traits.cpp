// SPDX-License-Identifier: Apache-2.0
// Traits of an optimizer that the engine cannot use: its plugin is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "train/tiny_run.hpp"

namespace triax {
namespace {

Refusals refusals_of(const test::TinyRun& run) {
  const config::RunConfig config = run.config();
  const Layout layout = train::layout_of(config);
  const train::RankPlugins plugins(config, layout, 0, 1, null_log());
  return plugins.refusals(layout, train::choose_placement(config), false);
}

TEST(OptimizerTraits, OfUnnamedEqualOrChangingStateAreRefused) {
  test::TinyRun run;
  run.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run.keys["optimizer.plugin"] = "\"optim-host\"";
  EXPECT_TRUE(refusals_of(run).empty());
  for (const auto& [fault, wrong] :
       std::map<std::string, std::string>{{"twice", "gives two state tensors the name \"m\""},
                                          {"reserved",
                                           "gives a state tensor the name \"master\", which the engine uses for the "
                                           "weights"},
                                          {"empty", "gives state tensor 1 an empty name"},
                                          {"path",
                                           "gives a state tensor the name \"../m\"; names have letters, digits, "
                                           "\"_\" and \"-\" only"},
                                          {"many", "gives 65 state tensors, which are more than 64"},
                                          {"changing", "returns other traits at its second call"}}) {
    run.keys["optimizer.traits"] = "\"" + fault + "\"";
    const Refusals all = refusals_of(run);
    ASSERT_EQ(all.size(), 1u) << fault;
    EXPECT_EQ(all.front().message, "optimizer.plugin \"optim-host\": traits() " + wrong);
    EXPECT_EQ(all.front().hint, "this is a defect of the plugin: report it to its author");
    EXPECT_THAT(all.front().keys, ::testing::ElementsAre("optimizer.plugin"));
  }
}

/// optim-trust multiplies the rate by a ratio of a whole parameter.
TEST(OptimizerTraits, OfAnUpdateOfWholeParametersRefuseTheirDivision) {
  test::TinyRun run;
  run.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run.keys["optimizer.plugin"] = "\"optim-trust\"";
  run.keys["train.precision"] = "\"fp64\"";
  run.keys["parallel.data"] = "2";
  EXPECT_TRUE(refusals_of(run).empty());
  for (const char* shard : {"states", "gradients", "parameters"}) {
    run.keys["optimizer.shard"] = text("\"{}\"", shard);
    const Refusals all = refusals_of(run);
    ASSERT_EQ(all.size(), 1u) << shard;
    EXPECT_EQ(all.front().message, text("optimizer.shard = \"{}\" divides parameters, but optimizer.plugin "
                                        "\"optim-trust\" needs whole ones",
                                        shard));
    EXPECT_THAT(all.front().keys, ::testing::ElementsAre("optimizer.shard", "optimizer.plugin"));
  }
  run.keys["parallel.data"] = "1"; // nothing is divided
  EXPECT_TRUE(refusals_of(run).empty());
}

/// The key that an optimizer names does not say which plugin refuses it.
TEST(OptimizerRefusals, BeginWithThePlugin) {
  test::TinyRun run;
  run.keys["plugins.path"] = "[\"" TEST_PLUGINS "\"]";
  run.keys["optimizer.plugin"] = "\"optim-trust\"";
  const Refusals all = refusals_of(run);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().message, "optimizer.plugin \"optim-trust\": optim-trust updates f64 weights on the host");
  EXPECT_THAT(all.front().keys, ::testing::ElementsAre("train.precision"));
}

} // namespace
} // namespace triax
