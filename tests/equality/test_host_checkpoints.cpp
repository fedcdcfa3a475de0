// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a device whose weights the host updates: they are those of a run whose device updates, and continue
// either way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "train/resumed_run.hpp"

namespace triax {
namespace {

using test::Where;
using ::testing::IsEmpty;

class HostUpdateCheckpoints : public test::ResumedRun {
 protected:
  HostUpdateCheckpoints() {
    run_.keys["plugins.path"] = text("[\"{}\"]", TEST_PLUGINS);
    run_.keys["kernels.plugin"] = "\"kernels-fake-cuda\"";
    run_.keys["kernels.inner"] = "\"kernels-cpu\""; // on the device too, so that both update with the same bits
    run_.keys["train.precision"] = "\"bf16\"";
  }
  static Where by_host(Where where) {
    where.keys["memory.offload"] = "\"optimizer\"";
    where.keys["memory.offload_buffer_bytes"] = "4096";
    return where;
  }
};

TEST_F(HostUpdateCheckpoints, AreThoseOfTheDeviceAndContinueEitherWay) {
  ASSERT_THAT(train({}, 8, "whole"), IsEmpty());
  ASSERT_THAT(train(by_host({}), 2, "mixed"), IsEmpty());
  ASSERT_THAT(train({}, 4, "mixed"), IsEmpty());
  ASSERT_THAT(train(by_host({}), 8, "mixed"), IsEmpty());
  EXPECT_TRUE(content("mixed", 8) == content("whole", 8));
}

/// Weights of the device are made from the master weights of the checkpoint.
TEST_F(HostUpdateCheckpoints, ARewindRestoresTheState) {
  run_.keys["run.dir"] = "\"rewound\"";
  const config::RunConfig config = this->config(by_host({}), 0);
  const train::RunFolder reserved(config, "# resolved\n");
  double first = 0, again = 0;
  const auto errors = start(config, test::TinySource(),
                            [&](train::Rank& rank, train::Checkpoints& checkpoints, int, test::TinySource&) {
                              rank.step();
                              checkpoints.save();
                              checkpoints.wait();
                              first = rank.evaluate().loss;
                              for (int step = 0; step < 2; ++step) rank.step();
                              EXPECT_NE(rank.evaluate().loss, first);
                              EXPECT_TRUE(checkpoints.rewind());
                              again = rank.evaluate().loss;
                              return train::LoopResult();
                            });
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(again, first);
}

/// Updates are delayed from the second step on. Layers then read weights that the master weights do not determine.
class DelayedUpdateCheckpoints : public HostUpdateCheckpoints {
 protected:
  static Where with_delay(Where where) {
    where = by_host(where);
    where.keys["memory.offload_delayed_update"] = "true";
    where.keys["memory.offload_warmup_steps"] = "1";
    return where;
  }
  static Where in_chunks(Where where) {
    where.keys["parallel.chunks"] = "2";
    where.keys["schedule.plugin"] = "\"sched-interleaved\"";
    return where;
  }
};

TEST_F(DelayedUpdateCheckpoints, ContinueWithTheBitsOfAnUninterruptedRun) {
  ASSERT_THAT(train(with_delay({}), 8, "whole"), IsEmpty());
  ASSERT_THAT(train(by_host({}), 8, "at-once"), IsEmpty());
  EXPECT_FALSE(content("whole", 8) == content("at-once", 8)) << "nothing was delayed";
  for (const int stop : {1, 2, 5}) ASSERT_THAT(train(with_delay({}), stop, "stopped"), IsEmpty());
  ASSERT_THAT(train(in_chunks(with_delay({})), 6, "stopped"), IsEmpty());
  ASSERT_THAT(train(with_delay({}), 8, "stopped"), IsEmpty());
  EXPECT_TRUE(content("stopped", 8) == content("whole", 8));
}

/// They read the weights of the next step, and send nothing.
TEST_F(DelayedUpdateCheckpoints, AndEvaluationsDoNotChangeTheTraining) {
  ASSERT_THAT(train(with_delay({}), 8, "whole"), IsEmpty());
  Where often = with_delay({});
  often.keys["checkpoint.every"] = "1";
  often.keys["eval.every"] = "1";
  often.keys["data.validation"] = "\"text\"";
  ASSERT_THAT(train(often, 8, "often"), IsEmpty());
  EXPECT_TRUE(content("often", 8) == content("whole", 8));
}

/// A run without delay begins with all updates, and a checkpoint of such a run has none that is pending.
TEST_F(DelayedUpdateCheckpoints, ContinueWithAndWithoutDelay) {
  ASSERT_THAT(train(by_host({}), 8, "whole"), IsEmpty());
  ASSERT_THAT(train(with_delay({}), 2, "mixed"), IsEmpty());
  EXPECT_TRUE(content("mixed", 2).contains("embedding/tokens.weight (working.delayed)"));
  ASSERT_THAT(train(by_host({}), 4, "mixed"), IsEmpty());
  EXPECT_FALSE(content("mixed", 4).contains("embedding/tokens.weight (working.delayed)"));
  ASSERT_THAT(train({}, 8, "mixed"), IsEmpty());
  EXPECT_TRUE(content("mixed", 8) == content("whole", 8))
      << "step 2 has the weights of step 1, whose update is complete";
  ASSERT_THAT(train(by_host({}), 2, "later"), IsEmpty());
  ASSERT_THAT(train(with_delay({}), 8, "later"), IsEmpty());
}

TEST_F(DelayedUpdateCheckpoints, ARewindRestoresThePendingUpdate) {
  run_.keys["run.dir"] = "\"rewound\"";
  const config::RunConfig config = this->config(with_delay({}), 0);
  const train::RunFolder reserved(config, "# resolved\n");
  std::vector<double> held_out;
  const auto errors = start(config, test::TinySource(),
                            [&](train::Rank& rank, train::Checkpoints& checkpoints, int, test::TinySource&) {
                              const auto evaluate = [&] { held_out.push_back(rank.evaluate().loss); };
                              for (int step = 0; step < 3; ++step) rank.step();
                              checkpoints.save();
                              checkpoints.wait();
                              evaluate();
                              for (int step = 0; step < 2; ++step) rank.step();
                              evaluate();
                              EXPECT_TRUE(checkpoints.rewind());
                              evaluate();
                              return train::LoopResult();
                            });
  EXPECT_THAT(errors, IsEmpty());
  ASSERT_EQ(held_out.size(), 3u);
  EXPECT_NE(held_out[1], held_out[0]);
  EXPECT_EQ(held_out[2], held_out[0]);
}

#ifdef TRIAX_WITH_UCX
TEST_F(DelayedUpdateCheckpoints, ContinueOnOtherRanks) {
  run_.keys["comm.plugin"] = "\"comm-ucx\"";
  const auto sharded = [](Where where, const char* shard) {
    where.keys["optimizer.shard"] = text("\"{}\"", shard);
    return where;
  };
  ASSERT_THAT(train(with_delay({.data = 2}), 8, "whole"), IsEmpty());
  ASSERT_THAT(train(with_delay({.data = 2}), 3, "moved"), IsEmpty());
  ASSERT_THAT(train(sharded(with_delay({.pipeline = 2, .data = 2}), "states"), 5, "moved"), IsEmpty());
  ASSERT_THAT(train(sharded(with_delay({.data = 2}), "parameters"), 8, "moved"), IsEmpty());
  EXPECT_TRUE(content("moved", 8) == content("whole", 8));
}
#endif

} // namespace
} // namespace triax
