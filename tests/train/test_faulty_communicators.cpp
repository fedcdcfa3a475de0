// SPDX-License-Identifier: Apache-2.0
// Training over comm-faulty: calls that begin late or in another order change no bit, and a flipped bit is seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/tiny_ranks.hpp"

namespace triax {
namespace {

using test::RankTrace;
using test::TinyRun;

constexpr int kSteps = 3;

/// Keys of a run and their values in TOML.
using Keys = std::map<std::string, std::string>;

const std::vector<Keys>& layouts() {
  static const std::vector<Keys> kLayouts = {
      {{"parallel.tensor", "2"}, {"parallel.data", "2"}, {"parallel.sequence", "true"}},
      {{"parallel.pipeline", "2"},
       {"parallel.chunks", "2"},
       {"parallel.data", "2"},
       {"model.layers", "4"},
       {"schedule.plugin", "\"sched-interleaved\""}},
      {{"parallel.pipeline", "2"},
       {"parallel.tensor", "2"},
       {"parallel.scatter_gather", "true"},
       {"schedule.plugin", "\"sched-zb-h1\""}},
  };
  return kLayouts;
}

std::vector<RankTrace> train_with(const Keys& layout, const Keys& comm) {
  TinyRun run;
  for (const Keys& keys : {layout, comm})
    for (const auto& [key, value] : keys) run.keys[key] = value;
  return test::train_ranks(run, kSteps);
}

Keys faulty(const char* fault, const char* seed) {
  return {{"comm.plugin", "\"comm-faulty\""},
          {"comm.inner", "\"comm-local\""},
          {"comm.fault", text("\"{}\"", fault)},
          {"comm.seed", seed},
          {"comm.delay_ms", "0.2"}};
}

TEST(FaultyCommunicators, DelayedAndReorderedCallsChangeNoBit) {
  for (const Keys& layout : layouts()) {
    const std::vector<RankTrace> expected = train_with(layout, {});
    for (const char* fault : {"none", "delay", "reorder"}) {
      SCOPED_TRACE(text("layout {}, {}", &layout - layouts().data(), fault));
      const std::vector<RankTrace> found = train_with(layout, faulty(fault, "1"));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t rank = 0; rank < found.size(); ++rank) {
        EXPECT_TRUE(found[rank].trace == expected[rank].trace) << rank;
        EXPECT_EQ(found[rank].held_out, expected[rank].held_out) << rank;
        ASSERT_EQ(found[rank].traffic.size(), expected[rank].traffic.size());
        for (std::size_t group = 0; group < found[rank].traffic.size(); ++group) {
          EXPECT_EQ(found[rank].traffic[group].ops, expected[rank].traffic[group].ops);
          EXPECT_EQ(found[rank].traffic[group].bytes_out, expected[rank].traffic[group].bytes_out);
          EXPECT_EQ(found[rank].traffic[group].bytes_in, expected[rank].traffic[group].bytes_in);
        }
      }
    }
  }
}

/// A comparison that did not see this would not see a wrong communicator either.
TEST(FaultyCommunicators, AFlippedBitIsSeen) {
  for (const char* axis : {"tensor", "pipeline"}) {
    const Keys& layout = layouts()[2];
    const std::vector<RankTrace> expected = train_with(layout, {});
    Keys corrupt = faulty("corrupt", "1");
    corrupt["comm.axis"] = text("\"{}\"", axis);
    corrupt["comm.rank"] = "1";
    corrupt["comm.at"] = "3";
    const std::vector<RankTrace> found = train_with(layout, corrupt);
    bool is_equal = true;
    for (std::size_t rank = 0; rank < found.size(); ++rank)
      is_equal = is_equal && found[rank].trace == expected[rank].trace;
    EXPECT_FALSE(is_equal) << axis;
  }
}

} // namespace
} // namespace triax
