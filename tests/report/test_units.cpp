// SPDX-License-Identifier: Apache-2.0
// Numbers with units, as printed for users.
#include <gtest/gtest.h>

#include <limits>

#include "report/units.hpp"

namespace triax::report {
namespace {

TEST(Units, Decimals) {
  EXPECT_EQ(decimals_text(5.5, 4), "5.5000");
  EXPECT_EQ(decimals_text(-0.06, 1), "-0.1");
  EXPECT_EQ(decimals_text(1e308, 1).size(), 311u);
  EXPECT_EQ(decimals_text(-std::numeric_limits<double>::quiet_NaN(), 4), "nan");
  EXPECT_EQ(decimals_text(-std::numeric_limits<double>::infinity(), 4), "-inf");
}

TEST(Units, Counts) {
  const struct {
    double count;
    const char* shown;
  } cases[] = {{0, "0"},           {1, "1"},          {1.5, "1.5"},      {999, "999"},      {999.4, "999"},
               {999.5, "1 k"},     {1000, "1 k"},     {1230, "1.23 k"},  {12345, "12.3 k"}, {99949, "99.9 k"},
               {99950, "100 k"},   {123456, "123 k"}, {999499, "999 k"}, {999500, "1 M"},   {1.2e6, "1.2 M"},
               {1.25e9, "1.25 G"}, {-1500, "-1.5 k"}, {0.5, "0.5"},      {0.001, "0"},      {2e18, "2 E"}};
  for (const auto& c : cases) EXPECT_EQ(count_text(c.count), c.shown) << c.count;
  EXPECT_EQ(counted_text(1, "plan"), "1 plan");
  EXPECT_EQ(counted_text(0, "plan"), "0 plans");
  EXPECT_EQ(counted_text(2, "microbatch", "microbatches"), "2 microbatches");
  EXPECT_EQ(count_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(count_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Units, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1000), "1 kB");
  EXPECT_EQ(bytes_text(3'400'000'000), "3.4 GB");
  EXPECT_EQ(bytes_text(~0ull), "18.4 EB");
}

TEST(Units, Durations) {
  const struct {
    double seconds;
    const char* shown;
  } cases[] = {{0, "0 ms"},
               {0.0005, "0.5 ms"},
               {0.34, "340 ms"},
               {0.9994, "999 ms"},
               {0.9996, "1 s"},
               {12, "12 s"},
               {59.4, "59 s"},
               {59.5, "1 min 00 s"},
               {242, "4 min 02 s"},
               {3599.4, "59 min 59 s"},
               {3599.6, "1 h 00 min"},
               {3720, "1 h 02 min"},
               {86399, "1 d 00 h"},
               {3 * 86400 + 4 * 3600, "3 d 04 h"},
               {-1, "?"},
               {1e300, "?"}};
  for (const auto& c : cases) EXPECT_EQ(duration_text(c.seconds), c.shown) << c.seconds;
  EXPECT_EQ(duration_text(std::numeric_limits<double>::quiet_NaN()), "?");
}

} // namespace
} // namespace triax::report
