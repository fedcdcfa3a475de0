// SPDX-License-Identifier: Apache-2.0
// Sizes as users write them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/byte_sizes.hpp"
#include "support/error_of.hpp"

namespace triax::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ByteSizes, HaveUnitsOf1024) {
  EXPECT_EQ(find_bytes("0"), 0);
  EXPECT_EQ(find_bytes("4096"), 4096);
  EXPECT_EQ(find_bytes("4096B"), 4096);
  EXPECT_EQ(find_bytes("64K"), 65536);
  EXPECT_EQ(find_bytes("64KiB"), 65536);
  EXPECT_EQ(find_bytes("3M"), 3 << 20);
  EXPECT_EQ(find_bytes("2GiB"), std::int64_t{2} << 30);
}

TEST(ByteSizes, RefuseOtherTexts) {
  for (const char* text : {"", "K", "-1", "1.5K", "4k", "4KB", "4Ki", "4 K", "4Q", "9999999999999999999", "1048576G"})
    EXPECT_EQ(find_bytes(text), std::nullopt) << text;
}

TEST(ByteSizes, AreAListOrARange) {
  EXPECT_THAT(parse_sizes("4K"), ElementsAre(4096));
  EXPECT_THAT(parse_sizes("8,4K,1M"), ElementsAre(8, 4096, 1 << 20));
  EXPECT_THAT(parse_sizes("4K:32K"), ElementsAre(4096, 8192, 16384, 32768));
  EXPECT_THAT(parse_sizes("4K:33K"), ElementsAre(4096, 8192, 16384, 32768));
  EXPECT_THAT(parse_sizes("1K:64K:8"), ElementsAre(1024, 8192, 65536));
  EXPECT_THAT(parse_sizes("4K:4K"), ElementsAre(4096));
}

TEST(ByteSizes, SayWhatIsWrong) {
  const auto refused = [](const char* text) { return test::error_of([text] { parse_sizes(text); }); };
  EXPECT_THAT(refused("4Q"), HasSubstr("\"4Q\" is not a size"));
  EXPECT_THAT(refused("4Q"), HasSubstr("write sizes as 4K,64K,1M, or a range 4K:64M"));
  EXPECT_THAT(refused("0"), HasSubstr("\"0\" is not a size"));
  EXPECT_THAT(refused("4K,"), HasSubstr("\"\" is not a size"));
  EXPECT_THAT(refused("64K:4K"), HasSubstr("has no sizes: 64K is more than 4K"));
  EXPECT_THAT(refused("4K:64K:1"), HasSubstr("\"1\" is not a factor in [2, 1024]"));
  EXPECT_THAT(refused("4K:64K:2:2"), HasSubstr("is not a size"));
  EXPECT_THAT(refused("8K,4K"), HasSubstr("are not in ascending order"));
}

TEST(ByteSizes, AreWrittenWithTheLargestUnit) {
  EXPECT_EQ(bytes_text(5000), "5000");
  EXPECT_EQ(bytes_text(65536), "64K");
  EXPECT_EQ(bytes_text(3 << 20), "3M");
  EXPECT_EQ(bytes_text(std::int64_t{4096} << 30), "4096G");
}

} // namespace
} // namespace triax::bench
