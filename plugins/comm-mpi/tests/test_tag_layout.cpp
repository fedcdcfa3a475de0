// SPDX-License-Identifier: Apache-2.0
// Tags that may be in flight between two ranks at a time are different MPI tags; lengths as MPI counts them.
#include <gtest/gtest.h>

#include <set>

#include "../src/byte_count.hpp"
#include "../src/tag_layout.hpp"

namespace triax::comm_mpi {
namespace {

using p2p::Phase;

class Layouts : public ::testing::TestWithParam<int> {
 protected:
  /// Counts a tag; it must be new, not negative, and fit.
  void add(p2p::Tag tag) {
    const int packed = layout_.pack(tag);
    EXPECT_TRUE(packed >= 0 && packed <= static_cast<int>((std::uint32_t{1} << GetParam()) - 1)) << packed;
    EXPECT_TRUE(seen_.insert(packed).second) << std::hex << tag;
  }
  const TagLayout layout_{GetParam()};
  std::set<int> seen_;
};
INSTANTIATE_TEST_SUITE_P(OfBits, Layouts, ::testing::Values(23, 31), ::testing::PrintToStringParamName());

TEST_P(Layouts, OfAllKindsGroupsPhasesAndTypesDiffer) {
  const p2p::TagLimits limits = layout_.limits();
  EXPECT_GE(limits.groups, 32);
  EXPECT_EQ(limits.channels, 16);
  EXPECT_EQ(layout_.number_bits(), GetParam() == 31 ? 13 : 9);
  for (const int group : {0, 1, limits.groups - 1}) {
    add(p2p::control_tag(group, 5));
    for (const std::uint64_t sequence : {0, 1, 2, 1000})
      for (const Phase phase : {Phase::opening, Phase::part, Phase::result})
        for (const std::int64_t chunk : {0, 1}) add(p2p::collective_tag(group, 5, sequence, phase, chunk));
    for (const int channel : {0, 1, limits.channels - 1})
      for (const DType type : {DType::f32, DType::u8})
        for (const std::uint64_t number : {0, 1, 2, (1 << layout_.number_bits()) - 1})
          add(p2p::transfer_tag(group, 5, channel, type, number));
  }
}

TEST_P(Layouts, OfLaterMessagesRepeat) {
  EXPECT_EQ(layout_.pack(p2p::transfer_tag(0, 0, 3, DType::f32, 0)),
            layout_.pack(p2p::transfer_tag(0, 0, 3, DType::f32, std::uint64_t{1} << layout_.number_bits())));
  EXPECT_EQ(layout_.pack(p2p::collective_tag(0, 0, 7, Phase::part, 0)),
            layout_.pack(p2p::collective_tag(0, 0, 7 + (1 << 18), Phase::part, 2)));
}

TEST(ByteCounts, CountAllBytesInInts) {
  constexpr std::size_t kMaxCount = std::numeric_limits<int>::max();
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, ByteCount::kBlock, kMaxCount}) {
    EXPECT_EQ(ByteCount(length).blocks, 0);
    EXPECT_EQ(static_cast<std::size_t>(ByteCount(length).bytes), length);
  }
  for (const std::size_t length :
       {kMaxCount + 1, kMaxCount + 2, 3 * kMaxCount + 7, ByteCount::kBlock * kMaxCount + 5}) {
    const ByteCount count(length);
    EXPECT_GT(count.blocks, 0);
    EXPECT_GE(count.bytes, 0);
    EXPECT_EQ(static_cast<std::size_t>(count.blocks) * ByteCount::kBlock + static_cast<std::size_t>(count.bytes),
              length);
  }
}

} // namespace
} // namespace triax::comm_mpi
