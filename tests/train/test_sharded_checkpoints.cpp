// SPDX-License-Identifier: Apache-2.0
// Checkpoints of runs with optimizer.shard: the same as without it, and they continue under any other sharding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/resumed_run.hpp"

namespace triax {
namespace {

using test::Where;
using ::testing::IsEmpty;

class ShardedCheckpoints : public test::ResumedRun {
 protected:
  ShardedCheckpoints() {
    run_.keys["kernels.plugin"] = "\"kernels-cpu\"";
    run_.keys["train.precision"] = "\"bf16\"";
    run_.keys["data.validation"] = "\"text\"";
  }
  static Where sharded(Where where, const std::string& shard = "states") {
    where.keys["optimizer.shard"] = text("\"{}\"", shard);
    return where;
  }
};

TEST_F(ShardedCheckpoints, AreThoseOfARunWithoutIt) {
  for (const char* precision : {"bf16", "fp32"}) {
    run_.keys["train.precision"] = text("\"{}\"", precision);
    const Where where{2, 1, 2};
    ASSERT_THAT(train(where, 4, text("whole-{}", precision)), IsEmpty());
    for (const char* shard : {"states", "gradients", "parameters"}) {
      const std::string folder = text("divided-{}-{}", precision, shard);
      ASSERT_THAT(train(sharded(where, shard), 4, folder), IsEmpty());
      EXPECT_TRUE(content(text("whole-{}", precision), 4) == content(folder, 4)) << folder;
    }
  }
}

/// To and from other sharding and pipeline sizes, with one data size: not a bit changes.
TEST_F(ShardedCheckpoints, ContinueUnderAnySharding) {
  ASSERT_THAT(train({1, 1, 2}, 8, "unstopped"), IsEmpty());
  ASSERT_THAT(train(sharded({1, 1, 2}), 2), IsEmpty());
  ASSERT_THAT(train(sharded({2, 1, 2}, "gradients"), 4), IsEmpty());
  ASSERT_THAT(train({1, 1, 2}, 6), IsEmpty());
  ASSERT_THAT(train(sharded({1, 1, 2}, "parameters"), 7), IsEmpty());
  ASSERT_THAT(train(sharded({2, 1, 2}), 8), IsEmpty());
  EXPECT_TRUE(content("run", 8) == content("unstopped", 8));
  ASSERT_THAT(evaluate({1, 1, 2}), IsEmpty());
  const std::optional<double> loss = result_.eval_loss;
  EXPECT_TRUE(loss);
  ASSERT_THAT(evaluate(sharded({2, 1, 2})), IsEmpty());
  EXPECT_EQ(result_.eval_loss, loss);
  ASSERT_THAT(evaluate(sharded({2, 1, 2}, "parameters")), IsEmpty());
  EXPECT_EQ(result_.eval_loss, loss);
}

/// optim-lamb needs values of whole parameters, and optim-muon whole matrices.
TEST_F(ShardedCheckpoints, OfUpdatesOfWholeParametersContinueUnderAnySharding) {
  for (const std::string optimizer : {"optim-lamb", "optim-muon"}) {
    SCOPED_TRACE(optimizer);
    const std::string unstopped = optimizer + "-unstopped", continued = optimizer + "-continued";
    run_.keys["optimizer.plugin"] = text("\"{}\"", optimizer);
    ASSERT_THAT(train({1, 1, 2}, 8, unstopped), IsEmpty());
    ASSERT_THAT(train(sharded({1, 1, 2}), 2, continued), IsEmpty());
    ASSERT_THAT(train(sharded({2, 1, 2}, "gradients"), 4, continued), IsEmpty());
    ASSERT_THAT(train({1, 1, 2}, 6, continued), IsEmpty());
    ASSERT_THAT(train(sharded({1, 1, 2}, "parameters"), 8, continued), IsEmpty());
    EXPECT_TRUE(content(continued, 8) == content(unstopped, 8));
  }
}

/// Of optim-muon, whose matrices other tensor ranks have other parts of.
TEST_F(ShardedCheckpoints, OfMatricesContinueOnOtherRanks) {
  run_.keys["optimizer.plugin"] = "\"optim-muon\"";
  ASSERT_THAT(train(sharded({1, 1, 4}), 4), IsEmpty());
  ASSERT_THAT(train(sharded({1, 2, 2}, "parameters"), 6), IsEmpty());
  ASSERT_THAT(train({1, 1, 1}, 8), IsEmpty());
}

/// Loads under other data and tensor sizes too.
TEST_F(ShardedCheckpoints, ContinueOnOtherRanks) {
  ASSERT_THAT(train(sharded({1, 1, 4}), 4), IsEmpty());
  ASSERT_THAT(train(sharded({1, 2, 2}, "parameters"), 6), IsEmpty());
  ASSERT_THAT(train({1, 1, 1}, 8), IsEmpty());
}

} // namespace
} // namespace triax
