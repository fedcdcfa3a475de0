// SPDX-License-Identifier: Apache-2.0
// Layouts with further axes: what the engine does over an axis follows from what it divides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::RankTrace;
using test::TinyRun;
using test::train_ranks;
using ::testing::Contains;
using ::testing::Field;

/// The run's configuration, in which further axes have the communicator of the data axis.
config::RunConfig with_axes(const TinyRun& run, const std::vector<std::string>& axes) {
  config::RunConfig config = run.config();
  for (const std::string& axis : axes) config.comm[axis] = config.comm.at("data");
  return config;
}

void expect_same(const std::vector<RankTrace>& one, const std::vector<RankTrace>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t rank = 0; rank < one.size(); ++rank) {
    EXPECT_EQ(one[rank].trace, other[rank].trace) << rank;
    EXPECT_EQ(one[rank].held_out, other[rank].held_out) << rank;
  }
}

TEST(Axes, OnesOfOneRankChangeNoBit) {
  TinyRun run;
  for (const char* axis : {"parallel.pipeline", "parallel.tensor", "parallel.data"}) run.keys[axis] = "2";
  const Layout further({{"tensor", 2, Divides::tensors},
                        {"expert", 1, Divides::samples},
                        {"context", 1, Divides::positions},
                        {"data", 2, Divides::samples},
                        {"pipeline", 2, Divides::layers}});
  expect_same(train_ranks(run, 3), train_ranks(with_axes(run, {"expert", "context"}), further, 3));
}

/// Two axes that divide samples are one axis of the product of their sizes.
TEST(Axes, SamplesMayBeDividedTwice) {
  TinyRun run;
  run.keys["parallel.data"] = "4";
  const Layout twice({{"expert", 2, Divides::samples}, {"data", 2, Divides::samples}});
  const std::vector<RankTrace> one = train_ranks(run, 3), two = train_ranks(with_axes(run, {"expert"}), twice, 3);
  expect_same(one, two);
  EXPECT_THAT(two[0].traffic, Contains(Field(&report::GroupTraffic::group, "expert*data")));
}

void use_divided_model(TinyRun& run) {
  for (const char* key : {"model.layers", "model.hidden", "model.heads", "model.sequence", "model.dropout"})
    run.keys.erase(key);
  run.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
  run.keys["model.plugin"] = "\"model-divided\"";
  run.keys["optimizer.plugin"] = "\"optim-sgd\"";
  run.keys["optimizer.lr"] = "0.25";
  run.keys["optimizer.weight_decay"] = "0";
}

/// Positions are divided, one vector's gradient is partial over the tensor axis, and one vector is cut.
TEST(Axes, PositionsPartialGradientsAndCutsChangeNoBit) {
  TinyRun run;
  use_divided_model(run);
  const RankTrace one = train_ranks(run, 3).front();
  run.keys["parallel.tensor"] = run.keys["parallel.data"] = "2";
  const Layout layout({{"tensor", 2, Divides::tensors},
                       {"context", 2, Divides::positions},
                       {"data", 2, Divides::samples},
                       {"pipeline", 1, Divides::layers}});
  const std::vector<RankTrace> many = train_ranks(with_axes(run, {"context"}), layout, 3);
  ASSERT_EQ(many.size(), 8u);
  for (std::size_t rank = 0; rank < many.size(); ++rank) {
    SCOPED_TRACE(rank);
    EXPECT_EQ(many[rank].trace.losses, one.trace.losses);
    EXPECT_EQ(many[rank].trace.norms, one.trace.norms);
    EXPECT_EQ(many[rank].held_out, one.held_out);
    EXPECT_EQ(many[rank].weights.at("divided/table"), one.weights.at("divided/table"));
    EXPECT_EQ(many[rank].weights.at("divided/part"), one.weights.at("divided/part"));
    const std::vector<std::byte>&cut = many[rank].weights.at("divided/cut"), &whole = one.weights.at("divided/cut");
    ASSERT_EQ(cut.size(), whole.size() / 2);
    const auto index = static_cast<std::size_t>(layout.coordinate(static_cast<int>(rank), "context"));
    EXPECT_TRUE(std::ranges::equal(cut, std::span(whole).subspan(index * cut.size(), cut.size())));
  }
  for (const char* group : {"context*data", "tensor*context*data"})
    EXPECT_THAT(many[0].traffic, Contains(Field(&report::GroupTraffic::group, group)));
}

} // namespace
} // namespace triax
