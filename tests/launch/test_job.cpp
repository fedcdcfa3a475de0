// SPDX-License-Identifier: Apache-2.0
// A rank's job before it has joined, and when it cannot join.
#include <gmock/gmock.h>

#include "control/job.hpp"
#include "launch/job.hpp"
#include "support/error_of.hpp"

namespace triax::launch {
namespace {

using control::test::hello_of;
using control::test::Raw;
using ::testing::HasSubstr;
using ::testing::Not;
using triax::test::error_of;

/// Rank 0 of two, which runs the job server on a free loopback port.
struct JobTest : ::testing::Test {
  static Environment rank_0() {
    Environment out;
    out.rank = 0;
    out.world = 2;
    out.serves = true;
    out.server = {"127.0.0.1", 0};
    return out;
  }
  config::LaunchKeys keys() const {
    config::LaunchKeys out;
    out.start_timeout_s = control::test::kLong;
    return out;
  }

  const Environment environment = rank_0();
  os::StopSignals signals{null_log()};
  Job job{{environment, keys(), control::test::kLong}, signals};
};

TEST_F(JobTest, BeforeItHasJoinedARankCanOnlyLeave) {
  EXPECT_THAT(error_of([&] { job.store(); }), HasSubstr("rank 0 has not joined its job"));
  EXPECT_THAT(error_of([&] { job.send("step", "1"); }), HasSubstr("rank 0 has not joined its job"));
  EXPECT_THAT(error_of([&] { job.finish(deadline_in(1)); }), HasSubstr("rank 0 has not joined its job"));
  EXPECT_THAT(error_of([&] { job.wait_for_start({}); }), HasSubstr("rank 0 has not joined its job"));
  job.leave();
}

TEST_F(JobTest, WhenTheServingRankCannotJoinTheOthersGetTheReason) {
  const os::Address address = job.server()->address();
  Raw impostor(address); // queued before rank 0's connection
  impostor.connection.send(encode(hello_of(0, 2)));
  Raw one(address);
  one.connection.send(encode(hello_of(1, 2)));
  EXPECT_THAT(error_of([&] { job.enter(); }), HasSubstr("rank 0 has already joined"));
  const auto message = one.next(control::Message::Kind::failed);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->number, 0);
  EXPECT_THAT(message->value, HasSubstr("rank 0 has already joined"));
  one.connection.send(encode(control::test::message(control::Message::Kind::goodbye)));
  job.leave();
}

TEST_F(JobTest, ARankThatIsLostBeforeTheStartIsNotLate) {
  job.enter();
  { Raw(job.server()->address(), hello_of(1, 2)); } // joins, and closes its connection
  const std::string error = error_of([&] { job.wait_for_start({}); });
  EXPECT_THAT(error, HasSubstr("rank 1 was lost: the connection was closed"));
  EXPECT_THAT(error, Not(HasSubstr("start_timeout_s")));
  job.leave();
}

/// The error of rank 1 where rank 0 has published these lines as its configuration.
std::string error_of_rank_1(const std::string& lines) {
  const control::test::Job job(2);
  const auto rank_0 = job.rank(0);
  rank_0->client.set("launch/keys", lines);
  Environment environment;
  environment.rank = 1;
  environment.world = 2;
  environment.serves = true;
  environment.server = job.server->address();
  config::LaunchKeys keys;
  keys.start_timeout_s = control::test::kLong;
  os::StopSignals signals{null_log()};
  Job rank_1{{environment, keys, control::test::kLong}, signals};
  rank_1.enter();
  const std::string error = error_of([&] { rank_1.wait_for_start({{}, {{"train.steps", "3"}}}); });
  rank_1.leave();
  return error;
}

TEST(JobKeys, AConfigurationThatCannotBeReadIsAnError) {
  EXPECT_THAT(error_of_rank_1("x"), HasSubstr("the configuration of rank 0 has an invalid line: \"x\""));
  EXPECT_THAT(error_of_rank_1("train.steps=3\n\x1b[31m"), HasSubstr("has an invalid line: \"\\u001B[31m\""));
}

/// No key of the TOML is at fault.
TEST(JobServer, AHostThatIsNotThisMachineIsBlamedOnItsVariable) {
  Environment environment = JobTest::rank_0();
  environment.launcher = Launcher::torchrun;
  environment.server.host = std::string(64, 'x') + ".invalid"; // too long for a DNS label: no query leaves the machine
  environment.server_variable = "MASTER_ADDR";
  os::StopSignals signals{null_log()};
  const std::string error = error_of([&] { Job job({environment, {}, control::test::kLong}, signals); });
  EXPECT_THAT(error, ::testing::StartsWith("environment of torchrun: MASTER_ADDR = " + environment.server.host + ": "));
  EXPECT_THAT(error, HasSubstr("\n  set MASTER_ADDR on all ranks to the name or an address of rank 0's machine"));
}

} // namespace
} // namespace triax::launch
