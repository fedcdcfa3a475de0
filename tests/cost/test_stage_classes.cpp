// SPDX-License-Identifier: Apache-2.0
// Classes of stages and ranks: which are equal, what is before a rank, and ties within a rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "executor/sample_model.hpp"
#include "plan/stage_classes.hpp"

namespace triax::plan {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

/// A first layer, eight blocks and a last layer, which is tied to the first.
class StageClassesOf : public ::testing::Test {
 protected:
  StageClassesOf() {
    model_.specs.resize(10);
    model_.tied = {{0, "table", 9, "table"}};
  }
  /// Four stages with two blocks each.
  StageClasses classes(std::vector<int> stage_rank, std::vector<int> first_stage) const {
    const StageMapping mapping{{{0, 3}, {3, 2}, {5, 2}, {7, 3}}, std::move(stage_rank), std::move(first_stage), false};
    return classes_of(model_, kinds_, mapping.even, mapping);
  }

  test::SampleModel model_;
  const std::vector<int> kinds_{0, 1, 1, 1, 1, 1, 1, 1, 1, 2};
};

TEST_F(StageClassesOf, StagesCountTheirLayersByKind) {
  const StageClasses all = classes({0, 1, 2, 3}, {0, 1, 2, 3});
  ASSERT_EQ(all.stages.size(), 3u); // the two in the middle are equal
  EXPECT_THAT(all.stages[0].blocks, ElementsAre(0, 2, 0));
  EXPECT_THAT(all.stages[0].others, ElementsAre(1, 0, 0));
  EXPECT_THAT(all.stages[1].blocks, ElementsAre(0, 2, 0));
  EXPECT_THAT(all.stages[1].others, Each(0));
  EXPECT_THAT(all.stages[2].blocks, ElementsAre(0, 2, 0));
  EXPECT_THAT(all.stages[2].others, ElementsAre(0, 0, 1));
  EXPECT_THAT(all.stages, Each(Field(&StageClasses::Stage::first_block, 1)));
}

/// Neighbours with as many layers, but of other kinds, or of which another one can be repeated.
TEST_F(StageClassesOf, StagesWithOtherLayersAreOtherClasses) {
  const StageMapping mapping{{{0, 3}, {3, 2}, {5, 2}, {7, 3}}, {0, 1, 2, 3}, {0, 1, 2, 3}, false};
  const std::vector<int> kinds{0, 1, 1, 1, 1, 1, 3, 1, 1, 2};
  const StageClasses all = classes_of(model_, kinds, mapping.even, mapping);
  ASSERT_EQ(all.stages.size(), 4u);
  EXPECT_THAT(all.stages[2].blocks, ElementsAre(0, 1, 0, 1));
  const StageMapping ends{{{0, 5}, {5, 5}}, {0, 1}, {0, 1}, false};
  const std::vector<int> alike(10, 0); // also the first and the last layer
  EXPECT_EQ(classes_of(model_, alike, ends.even, ends).stages.size(), 1u);
  const StageMapping shifted{{{0, 2}, {2, 2}, {4, 6}}, {0, 1, 2}, {0, 1, 2}, false};
  EXPECT_EQ(classes_of(model_, alike, shifted.even, shifted).stages.size(), 3u);
}

/// Of the equal ranks 1 and 2, the second waits for more stages.
TEST_F(StageClassesOf, EqualRanksAreOneWithTheMostStagesBefore) {
  const StageClasses all = classes({0, 1, 2, 3}, {0, 1, 2, 3});
  ASSERT_EQ(all.ranks.size(), 3u);
  EXPECT_THAT(all.ranks[1].stages, ElementsAre(1));
  EXPECT_EQ(all.ranks[1].lowest, 2);
  EXPECT_THAT(all.ranks[0].before, Each(0));
  EXPECT_THAT(all.ranks[1].before, ElementsAre(1, 1, 0));
  EXPECT_THAT(all.ranks[2].before, ElementsAre(1, 2, 0));
  ASSERT_EQ(all.ties.size(), 1u);
  EXPECT_EQ(all.ties[0].a, 0);
  EXPECT_EQ(all.ties[0].b, 3);
  EXPECT_THAT(all.ranks, Each(Field(&StageClasses::Rank::tied, IsEmpty())));
}

/// In a V, the first rank has the first and the last stage.
TEST_F(StageClassesOf, ARankWithBothLayersOfATieNamesTheStageOfTheSecond) {
  const StageClasses all = classes({0, 1, 1, 0}, {0, 1});
  ASSERT_EQ(all.ranks.size(), 2u);
  EXPECT_THAT(all.ranks[0].stages, ElementsAre(0, 2));
  EXPECT_THAT(all.ranks[0].tied, ElementsAre(StageClasses::Rank::Tied{0, 1}));
  EXPECT_THAT(all.ranks[1].stages, ElementsAre(1, 1));
  EXPECT_THAT(all.ranks[1].tied, IsEmpty());
  EXPECT_THAT(all.ranks[1].before, ElementsAre(1, 0, 0));
  EXPECT_EQ(all.ties.at(0).a, all.ties.at(0).b);
}

} // namespace
} // namespace triax::plan
