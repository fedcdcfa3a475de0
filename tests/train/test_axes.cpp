// SPDX-License-Identifier: Apache-2.0
// Layouts with further axes: what the engine does over an axis follows from what it divides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::divide_over_all_axes;
using test::RankTrace;
using test::TinyRun;
using test::train_ranks;
using test::use_divided_model;
using test::with_axes;
using ::testing::Contains;
using ::testing::Field;

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

/// The rank's part of a parameter: rows are cut by one axis and columns by another; empty: by none.
std::vector<std::byte> part_of(const std::vector<std::byte>& whole, std::size_t columns, const Layout& layout, int rank,
                               const char* rows_axis, const char* columns_axis) {
  const auto range = [&](const char* axis, std::size_t size) {
    const std::size_t parts = *axis ? static_cast<std::size_t>(layout.size(axis)) : 1;
    const std::size_t index = *axis ? static_cast<std::size_t>(layout.coordinate(rank, axis)) : 0;
    return std::pair(index * size / parts, (index + 1) * size / parts);
  };
  const std::size_t row_bytes = columns * sizeof(float);
  const auto [first_row, end_row] = range(rows_axis, whole.size() / row_bytes);
  const auto [begin, end] = range(columns_axis, row_bytes);
  std::vector<std::byte> out;
  for (std::size_t row = first_row; row < end_row; ++row)
    for (std::size_t at = begin; at < end; ++at) out.push_back(whole[row * row_bytes + at]);
  return out;
}

/// On 32 ranks.
TEST(Axes, WorkThatIsDividedOverAllAxesChangesNoBit) {
  TinyRun run;
  use_divided_model(run);
  const RankTrace one = train_ranks(run, 3).front();
  const Layout layout = divide_over_all_axes(run);
  const std::vector<RankTrace> many = train_ranks(with_axes(run, {"context", "expert"}), layout, 3);
  ASSERT_EQ(many.size(), 32u);
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    SCOPED_TRACE(layout.describe(rank));
    const RankTrace& of = many[static_cast<std::size_t>(rank)];
    EXPECT_EQ(of.trace.losses, one.trace.losses);
    EXPECT_EQ(of.trace.norms, one.trace.norms);
    EXPECT_EQ(of.held_out, one.held_out);
    const bool has_first = layout.coordinate(rank, kPipelineAxis) == 0;
    ASSERT_EQ(of.weights.size(), has_first ? 2u : 3u);
    for (const auto& [name, weights] : of.weights) {
      const bool both = name == "second/both";
      const char* const rows = both || name == "second/expert" ? "expert" : name == "second/cut" ? "context" : "";
      EXPECT_EQ(weights, part_of(one.weights.at(name), both ? 4 : 1, layout, rank, rows, both ? "context" : ""))
          << name;
    }
  }
  const auto has_group = [](const RankTrace& rank, const char* group) {
    EXPECT_THAT(rank.traffic, Contains(Field(&report::GroupTraffic::group, group)));
  };
  has_group(many.front(), "context*expert*data");        // table
  has_group(many.front(), "tensor*context*expert*data"); // part
  has_group(many.back(), "expert*data");                 // cut
  has_group(many.back(), "context*data");                // expert
  has_group(many.back(), "data");                        // both
}

} // namespace
} // namespace triax
