// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a device whose weights the host updates: they are those of a run whose device updates, and continue
// either way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

} // namespace
} // namespace triax
