// SPDX-License-Identifier: Apache-2.0
// Lists of ranks as text, and counts of rejected connections.
#include <gtest/gtest.h>

#include "control/rank_ranges.hpp"
#include "control/rejections.hpp"

namespace triax::control {
namespace {

TEST(RankRanges, ThreeInARowAreARange) {
  EXPECT_EQ(rank_ranges({}), "");
  EXPECT_EQ(rank_ranges({3}), "3");
  EXPECT_EQ(rank_ranges({0, 1, 3}), "0, 1, 3");
  EXPECT_EQ(rank_ranges({3, 7, 8, 9, 10, 11, 12}), "3, 7-12");
}

TEST(RankRanges, AfterTenTheRestIsCounted) {
  std::vector<int> even;
  for (int rank = 0; rank < 4096; rank += 2) even.push_back(rank);
  EXPECT_EQ(rank_ranges(even), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 2038 more");
}

TEST(Rejections, EqualOnesAreCounted) {
  Rejections all;
  EXPECT_EQ(to_text(all), "");
  all.add(1, "127.0.0.1", "wrong token");
  EXPECT_EQ(to_text(all), "rejected 1 connection: rank 1 from 127.0.0.1: wrong token");
  all.add(1, "127.0.0.1", "wrong token");
  all.add(-1, "10.0.0.9", "no valid handshake");
  EXPECT_EQ(to_text(all),
            "rejected 3 connections: rank 1 from 127.0.0.1: wrong token (2 times); 10.0.0.9: no valid handshake");
}

TEST(Rejections, AFloodFillsNeitherMemoryNorTheText) {
  Rejections all;
  for (int rank = 0; rank < 5'000; ++rank) all.add(rank, "10.0.0.9", std::string(1'000, '\n'));
  EXPECT_EQ(all.total, 5'000);
  EXPECT_EQ(all.kinds.size(), Rejections::kMaxKinds);
  const std::string shown = to_text(all);
  EXPECT_LT(shown.size(), 10'000U);
  EXPECT_EQ(shown.find('\n'), std::string::npos);
  EXPECT_TRUE(shown.ends_with("; and 4996 more")) << shown;
}

} // namespace
} // namespace triax::control
