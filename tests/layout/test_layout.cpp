// SPDX-License-Identifier: Apache-2.0
// Layout: ranks, coordinates and groups.
#include <gmock/gmock.h>

#include <set>

#include "triax/error.hpp"
#include "triax/layout.hpp"

namespace triax {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Layout, TensorVariesFastestThenDataThenPipeline) {
  const Layout layout = Layout::ptd(3, 2, 4);
  EXPECT_EQ(layout.world_size(), 24);
  EXPECT_THAT(layout.coordinates(0), ElementsAre(0, 0, 0)); // tensor, data, pipeline
  EXPECT_THAT(layout.coordinates(1), ElementsAre(1, 0, 0));
  EXPECT_THAT(layout.coordinates(2), ElementsAre(0, 1, 0));
  EXPECT_THAT(layout.coordinates(8), ElementsAre(0, 0, 1));
  EXPECT_THAT(layout.coordinates(23), ElementsAre(1, 3, 2));
  EXPECT_EQ(layout.coordinate(13, "tensor"), 1);
  EXPECT_EQ(layout.coordinate(13, "data"), 2);
  EXPECT_EQ(layout.coordinate(13, "pipeline"), 1);
}

TEST(Layout, RankAndCoordinatesAreInverse) {
  const Layout layout = Layout::ptd(3, 2, 4);
  for (int rank = 0; rank < layout.world_size(); ++rank) EXPECT_EQ(layout.rank_of(layout.coordinates(rank)), rank);
}

TEST(Layout, SizesByName) {
  const Layout layout = Layout::ptd(3, 2, 4);
  EXPECT_EQ(layout.pipeline_size(), 3);
  EXPECT_EQ(layout.tensor_size(), 2);
  EXPECT_EQ(layout.data_size(), 4);
  EXPECT_EQ(layout.size("context"), 1);
  EXPECT_EQ(layout.coordinate(5, "context"), 0);
}

TEST(Layout, GroupsDifferInOneAxis) {
  const Layout layout = Layout::ptd(3, 2, 4);
  const Group tensor = layout.group(13, "tensor");
  EXPECT_THAT(tensor.ranks, ElementsAre(12, 13));
  EXPECT_EQ(tensor.group_rank, 1);
  EXPECT_EQ(tensor.id, "tensor.12");
  const Group data = layout.group(13, "data");
  EXPECT_THAT(data.ranks, ElementsAre(9, 11, 13, 15));
  EXPECT_EQ(data.group_rank, 2);
  const Group pipeline = layout.group(13, "pipeline");
  EXPECT_THAT(pipeline.ranks, ElementsAre(5, 13, 21));
  EXPECT_EQ(pipeline.group_rank, 1);
}

TEST(Layout, MembersAgreeOnTheirGroupAndOthersHaveAnother) {
  const Layout layout = Layout::ptd(2, 3, 2);
  for (const char* axis : {"tensor", "data", "pipeline"}) {
    std::set<std::string> ids;
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      const Group group = layout.group(rank, axis);
      EXPECT_EQ(group.ranks[static_cast<std::size_t>(group.group_rank)], rank);
      for (const int member : group.ranks) {
        EXPECT_EQ(layout.group(member, axis).id, group.id);
        EXPECT_EQ(layout.group(member, axis).ranks, group.ranks);
      }
      ids.insert(group.id);
    }
    EXPECT_EQ(static_cast<int>(ids.size()), layout.world_size() / layout.size(axis)) << axis;
  }
}

TEST(Layout, AProductGroupDiffersInItsAxes) {
  const Layout layout = Layout::ptd(3, 2, 4);
  const std::vector<std::string> axes = {"data", "tensor"}; // in any order
  const Group group = layout.group(13, axes);
  EXPECT_EQ(group.axis, "tensor*data");
  EXPECT_EQ(group.id, "tensor*data.8");
  EXPECT_THAT(group.ranks, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_EQ(group.group_rank, 5);
  const std::vector<std::string> apart = {"tensor", "pipeline"};
  EXPECT_THAT(layout.group(13, apart).ranks, ElementsAre(4, 5, 12, 13, 20, 21));
  EXPECT_EQ(layout.group(13, apart).group_rank, 3);
  EXPECT_THAT(layout.group(13, std::vector<std::string>{}).ranks, ElementsAre(13));
  for (int rank = 0; rank < layout.world_size(); ++rank)
    for (const auto& of : {axes, apart, std::vector<std::string>{}})
      EXPECT_EQ(layout.group_rank(rank, of), layout.group(rank, of).group_rank);
  EXPECT_EQ(Layout::slowest_axis(group.axis), "data");
  EXPECT_EQ(Layout::slowest_axis("data"), "data");
}

TEST(Layout, AxesAreFoundByWhatTheyDivide) {
  const Layout layout({{"tensor", 2, Divides::tensors},
                       {"context", 3, Divides::positions},
                       {"data", 2, Divides::samples},
                       {"expert", 1, Divides::samples},
                       {"pipeline", 2, Divides::layers}});
  EXPECT_THAT(layout.axes_dividing({Divides::samples, Divides::positions}), ElementsAre("context", "data"));
  EXPECT_THAT(layout.axes_dividing({Divides::layers}), ElementsAre("pipeline"));
  EXPECT_EQ(layout.describe(23), "pipeline 1, expert 0, data 1, context 2, tensor 1");
}

TEST(Layout, WorldGroupAndUnknownAxis) {
  const Layout layout = Layout::ptd(2, 1, 2);
  const Group world = layout.world_group(3);
  EXPECT_THAT(world.ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(world.group_rank, 3);
  EXPECT_THAT(layout.group(3, "expert").ranks, ElementsAre(3));
}

TEST(Layout, TakesFurtherAxes) {
  const Layout layout({{"tensor", 2}, {"context", 2}, {"data", 2}});
  EXPECT_EQ(layout.world_size(), 8);
  EXPECT_EQ(layout.coordinate(6, "context"), 1);
  EXPECT_EQ(layout.pipeline_size(), 1);
}

TEST(Layout, RefusesInvalidAxesAndCoordinates) {
  EXPECT_THROW(Layout({{"", 2}}), Error);
  EXPECT_THROW(Layout({{"data", 0}}), Error);
  EXPECT_THROW(Layout({{"data", 2}, {"data", 2}}), Error);
  EXPECT_THROW(Layout({{"tensor*data", 2}}), Error);
  EXPECT_THROW(Layout({{"pipeline", 2, Divides::layers}, {"replica", 2, Divides::layers}}), Error);
  EXPECT_THROW(Layout({{"stage", 1, Divides::layers}}), Error);
  EXPECT_THROW(Layout({{"pipeline", 2, Divides::samples}}), Error);
  EXPECT_THROW(Layout({{"a", 65536}, {"b", 65536}}), Error);
  const Layout layout = Layout::ptd(2, 2, 2);
  EXPECT_THROW(layout.coordinates(8), Error);
  EXPECT_THROW(layout.coordinates(-1), Error);
  EXPECT_THROW(layout.rank_of(std::vector<int>{0, 0}), Error);
  EXPECT_THROW(layout.rank_of(std::vector<int>{0, 2, 0}), Error);
  try {
    layout.coordinates(8);
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("rank 8 is outside a world of 8"));
  }
}

} // namespace
} // namespace triax
