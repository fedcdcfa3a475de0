// SPDX-License-Identifier: Apache-2.0
// Traffic of ranks, added and printed; prefixed output lines of ranks that are processes.
#include <gmock/gmock.h>

#include <sstream>

#include "report/rank_output.hpp"
#include "report/traffic.hpp"

namespace triax::report {
namespace {

TEST(Traffic, IsAddedUpByGroupAndPlugin) {
  std::vector<GroupTraffic> sums;
  add_traffic(sums, {{"tensor", "comm-a", 1, 10, 20}, {"data", "comm-a", 2, 1, 2}});
  add_traffic(sums, {{"tensor", "comm-a", 3, 30, 40}, {"tensor", "comm-b", 5, 50, 60}});
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[0].ops, 4u);
  EXPECT_EQ(sums[0].bytes_out, 40u);
  EXPECT_EQ(sums[0].bytes_in, 60u);
  EXPECT_EQ(sums[2].plugin, "comm-b");
}

TEST(Traffic, HasALineForEachGroup) {
  EXPECT_EQ(traffic_text({}), "");
  EXPECT_EQ(traffic_text({{"tensor", "comm-ucx", 9600, 1'230'000'000, 0}, {"pipeline", "comm-local", 12, 512, 0}}),
            "sent between ranks, sum over all ranks:\n"
            "  tensor    comm-ucx    9.6 k calls  1.23 GB\n"
            "  pipeline  comm-local  12 calls     512 B");
}

TEST(RankOutput, NamesTheRankAndShowsControlCharacters) {
  std::ostringstream out;
  RankOutput(out, false).write(3, "a line\x1b[2J");
  EXPECT_EQ(out.str().substr(0, 14), "rank 3: a line");
  EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
  std::ostringstream terminal;
  RankOutput(terminal, true).write(0, "x");
  EXPECT_EQ(terminal.str(), "\r\x1b[Krank 0: x\n");
}

} // namespace
} // namespace triax::report
