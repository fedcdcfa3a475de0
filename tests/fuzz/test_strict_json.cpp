// SPDX-License-Identifier: Apache-2.0
// JSON texts with random changes: what the strict parser takes has the value that the library's parser finds.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "changed_bytes.hpp"
#include "checkpoint/strict_json.hpp"

namespace triax::checkpoint {
namespace {

constexpr const char* kGoodJson = R"({"a": [1, -2.5, 3e4, null, true, {"b": "\u00e4\n", "c": {}, "d": []}],
"e": {"f": {"g": [[[18446744073709551615]]]}}, "h": false, "": -9223372036854775808})";

TEST(Fuzz, ReadsOrRefusesChangedJson) {
  std::mt19937_64 random(61);
  int accepted = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    std::string changed = kGoodJson;
    if (round % 2) test::change_some(changed, random);
    if (round % 2 == 0) test::change_json(changed, random);
    Json out;
    if (!parse_strict(changed, out).empty()) continue;
    ++accepted;
    ASSERT_TRUE(Json::accept(changed)) << changed;
    ASSERT_EQ(out.dump(), Json::parse(changed).dump()) << changed;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kRounds);
}

} // namespace
} // namespace triax::checkpoint
