// SPDX-License-Identifier: Apache-2.0
// The summary that ranks compare: equal for copies, different for other corpora.
#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "data/content_summary.hpp"
#include "data/megatron_files.hpp"

namespace triax::data {
namespace {

using namespace triax::test;

std::string summary_of(const std::vector<std::uint16_t>& tokens) {
  const TempFolder folder;
  const MegatronIndex index(8, sizeof(std::uint16_t), {static_cast<std::int32_t>(tokens.size())}, {0, 1});
  write_file(folder / "d.bin", raw_bytes(tokens));
  write_file(folder / "d.idx", index.bytes());
  return content_summary(TokenFile(folder / "d"));
}

std::vector<std::uint16_t> counting(std::size_t count) {
  std::vector<std::uint16_t> out(count);
  std::iota(out.begin(), out.end(), std::uint16_t{0});
  return out;
}

TEST(ContentSummary, CopiesAreEqual) {
  EXPECT_EQ(summary_of(counting(100'000)), summary_of(counting(100'000)));
  EXPECT_THAT(summary_of(counting(3)), ::testing::MatchesRegex("3 tokens, checksum [0-9a-f]{16}"));
}

TEST(ContentSummary, LengthFirstAndLastTokenCount) {
  const std::vector<std::uint16_t> tokens = counting(100'000);
  std::vector<std::uint16_t> first = tokens, last = tokens;
  ++first.front();
  ++last.back();
  for (const auto& other : {first, last, counting(99'999)}) EXPECT_NE(summary_of(other), summary_of(tokens));
}

/// A short file is read whole, so that every token counts.
TEST(ContentSummary, EveryTokenOfAShortFileCounts) {
  const std::vector<std::uint16_t> tokens = counting(20);
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    std::vector<std::uint16_t> other = tokens;
    ++other[at];
    EXPECT_NE(summary_of(other), summary_of(tokens)) << at;
  }
}

} // namespace
} // namespace triax::data
