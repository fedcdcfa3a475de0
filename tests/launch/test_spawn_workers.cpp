// SPDX-License-Identifier: Apache-2.0
// The launcher ends a job if a rank sends a malformed message or an unknown topic, as a rank of another build may. The
// ranks are processes of this program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "control/client.hpp"
#include "launch/spawn_workers.hpp"
#include "train/tiny_run.hpp"

namespace triax::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTopic = "TRIAX_TEST_TOPIC";
constexpr const char* kText = "TRIAX_TEST_TEXT";

/// Disabled because it is not a test, but the body of the rank processes of the tests below.
TEST(RankBody, DISABLED_SendsOneMessage) {
  control::ClientRequest request;
  request.server = {"127.0.0.1", std::atoi(std::getenv("MASTER_PORT"))};
  request.token = control::JobToken(std::getenv("TRIAX_JOB_TOKEN"));
  request.rank = std::atoi(std::getenv("RANK"));
  request.world = std::atoi(std::getenv("WORLD_SIZE"));
  request.start_timeout_s = request.silence_s = request.grace_s = 60;
  request.position = [] { return std::string("starting"); };
  control::JobAbort flag;
  control::Client client(request, flag);
  if (request.rank == 1) client.send(std::getenv(kTopic), std::getenv(kText));
  EXPECT_THROW(client.get("never", deadline_in(60)), Error);
}

class ErrorLines final : public Log {
 public:
  bool enabled(LogLevel level) const noexcept override { return level == LogLevel::error; }
  void write(LogLevel, std::string_view line) noexcept override { text += std::string(line) + "\n"; }
  std::string text;
};

/// What the launcher logs as errors when rank 1 of 2 sends this message.
std::string errors_after(const std::string& topic, const std::string& message) {
  ::setenv(kTopic, topic.c_str(), 1);
  ::setenv(kText, message.c_str(), 1);
  test::TinyRun tiny;
  tiny.keys["parallel.data"] = "2";
  const config::RunConfig run = tiny.config();
  ErrorLines log;
  const os::StopSignals signals(log);
  const train::RunFolder folder(run, "");
  int failed = -2;
  const ProcessTraining training{
      .run = run,
      .arguments = {"--gtest_filter=RankBody.*", "--gtest_also_run_disabled_tests"},
      .folder = &folder,
      .log = log,
      .signals = signals,
      .step = {},
      .failed = [&failed](int rank, const std::string&, int) { failed = rank; },
  };
  EXPECT_FALSE(spawn_workers(training));
  EXPECT_EQ(failed, 1);
  return log.text;
}

TEST(SpawnWorkers, AMalformedStepEndsTheJobAndNamesItsRank) {
  EXPECT_THAT(errors_after("step", "{\"step\":1"),
              AllOf(HasSubstr("rank 1 ("), HasSubstr("message from rank 1: malformed: {\"step\":1"),
                    HasSubstr("use the same build of Triax on all ranks")));
}

TEST(SpawnWorkers, AnUnknownTopicEndsTheJobAndNamesItsRank) {
  EXPECT_THAT(errors_after("stap", "{}"),
              AllOf(HasSubstr("rank 1 ("), HasSubstr("message from rank 1: unknown topic \"stap\"")));
}

} // namespace
} // namespace triax::launch
