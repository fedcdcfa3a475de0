// SPDX-License-Identifier: Apache-2.0
// Failure reports as text and as JSON.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "launch/failure_report.hpp"
#include "support/temp_folder.hpp"

namespace triax::launch {
namespace {

using control::RankStatus;
using ::testing::HasSubstr;
using State = RankStatus::State;

const Layout& four() {
  static const Layout layout = Layout::ptd(2, 2, 1);
  return layout;
}

FailureFacts lost() {
  return {four(),
          {2, true, "killed by signal 9 (Killed)"},
          {{State::left, 4209, "n7", "step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx", 0.2},
           {State::joined, 4210, "n7", "step 118, 0F3", 19.4},
           {State::lost, 4211, "n7", "step 118, 1F3", 0.3, 0.42},
           {State::missing, 0, "", "", 0}},
          117,
          1.234,
          "run/failure.json"};
}

TEST(FailureReport, ReportsTheLostRankAndAllPositions) {
  EXPECT_EQ(to_text(lost()),
            "rank 2 (pipeline 1, data 0, tensor 0; host n7, pid 4211) was lost after step 117: killed by signal 9 "
            "(Killed)\n"
            "  last position: step 118, 1F3 (0.4 s ago)\n"
            "  rank 0: step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx\n"
            "  rank 1: step 118, 0F3; no message for 19.4 s: its process may be stopped, or its host down\n"
            "  rank 3: did not join\n"
            "  all ranks stopped after 1.2 s");
}

TEST(FailureReport, TheErrorOfARankThatFailedIsInItsLog) {
  FailureFacts facts = lost();
  facts.failure = {0, false, "step 118, 0F3: out of luck"};
  facts.ranks[0].position.clear();
  facts.last_step = 0;
  EXPECT_THAT(to_text(facts),
              HasSubstr("rank 0 (pipeline 0, data 0, tensor 0; host n7, pid 4209) failed before the end "
                        "of its first step\n  last position: starting\n"));
}

TEST(FailureReport, ARankThatIsStuckIsNamedWithItsCall) {
  FailureFacts facts = lost();
  facts.failure = {1, false, "step 118, 0F3: no progress for 5.0 s: in gemm() of plugin \"slow\"\n  it hangs, or ...",
                   true};
  EXPECT_THAT(to_text(facts), HasSubstr("; host n7, pid 4210) is stuck after step 117: step 118, 0F3: no progress for "
                                        "5.0 s: in gemm() of plugin \"slow\"\n  last position: step 118, 0F3"));
  facts.is_ended = true;
  EXPECT_THAT(to_text(facts), ::testing::EndsWith("\n  this process is terminated after 1.2 s"));
  const test::TempFolder folder;
  facts.file = folder / "failure.json";
  write_failure(facts, null_log());
  EXPECT_EQ(nlohmann::json::parse(test::read_file(folder / "failure.json"))["stuck"], true);
}

/// Ranks that are threads have no process id.
TEST(FailureReport, ARankThatIsAThreadHasAPlace) {
  FailureFacts facts = lost();
  facts.failure = {1, false, "step 118, 0F3: no progress for 5.0 s", true};
  facts.ranks = {{State::joined, 0, "", "step 118, 0B3", 0},
                 {State::joined, 0, "", "step 118, 0F3", 0},
                 {State::left, 0, "", "step 118, 1B2", 0},
                 {State::joined, 0, "", "", 0}};
  EXPECT_EQ(to_text(facts),
            "rank 1 (pipeline 0, data 0, tensor 1) is stuck after step 117: step 118, 0F3: no progress for 5.0 s\n"
            "  last position: step 118, 0F3\n"
            "  rank 0: step 118, 0B3\n"
            "  rank 2: step 118, 1B2\n"
            "  rank 3: unknown\n"
            "  all ranks stopped after 1.2 s");
  facts.ranks[1].state = State::lost; // for a process that never joined
  facts.ranks[1].position.clear();
  EXPECT_THAT(to_text(facts), HasSubstr("\n  last position: did not join\n"));
}

/// Rank 0 has recorded step 118, whose optimizer fails on rank 1.
TEST(FailureReport, AStepThatARankHasNotCompletedIsNotCounted) {
  FailureFacts facts = lost();
  facts.last_step = 118;
  facts.failure = {1, false, "out of luck"};
  facts.ranks[1].position = "step 118, 0OPT_STEP";
  EXPECT_THAT(to_text(facts), HasSubstr(" failed after step 117\n"));
  facts.ranks[1].position = "step 50, 0F3"; // of an old heartbeat
  EXPECT_THAT(to_text(facts), HasSubstr(" failed after step 117\n"));
  facts.ranks[1].position = "step 119, 0F3";
  EXPECT_THAT(to_text(facts), HasSubstr(" failed after step 118\n"));
  facts.ranks[1].position = "after step 118";
  EXPECT_THAT(to_text(facts), HasSubstr(" failed after step 118\n"));
}

/// Rank 0 has recorded step 118, and the last heartbeat of rank 2 is older.
TEST(FailureReport, ALostRankMayHaveCompletedTheRecordedStep) {
  const test::TempFolder folder;
  FailureFacts facts = lost();
  facts.last_step = 118;
  facts.file = folder / "failure.json";
  EXPECT_THAT(to_text(facts), HasSubstr(" was lost during or after step 118: killed by signal 9 (Killed)\n"));
  write_failure(facts, null_log());
  EXPECT_EQ(nlohmann::json::parse(test::read_file(folder / "failure.json"))["last_step"], 117); // all ranks have
}

FailureFacts launcher_stopped() {
  FailureFacts facts = lost();
  facts.failure = {control::kNoRank, true, "the job server did not run for 3.2 s, and the ranks stopped"};
  facts.ranks[2].state = State::left;
  facts.rejections.add(1, "10.0.0.9", "wrong token");
  return facts;
}

TEST(FailureReport, WhereTheLauncherFailedNoRankIsBlamed) {
  FailureFacts facts = launcher_stopped();
  EXPECT_EQ(
      to_text(facts),
      "launcher failed (no rank failed) after step 117: the job server did not run for 3.2 s, and the ranks stopped\n"
      "  to pause a run, stop all of its processes together (Ctrl-Z), or raise train.stall_timeout_s\n"
      "  rank 0: step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx\n"
      "  rank 1: step 118, 0F3; no message for 19.4 s: its process may be stopped, or its host down\n"
      "  rank 2: step 118, 1F3\n"
      "  rank 3: did not join\n"
      "  the job server rejected 1 connection: rank 1 from 10.0.0.9: wrong token\n"
      "  all ranks stopped after 1.2 s");
  facts.server = kJobServer;
  EXPECT_THAT(to_text(facts), ::testing::StartsWith("job server failed (no rank failed) after step 117: "));
}

TEST(FailureReport, WhereTheLauncherFailedTheFileNamesNoRank) {
  const test::TempFolder folder;
  FailureFacts facts = launcher_stopped();
  facts.file = folder / "failure.json";
  write_failure(facts, null_log());
  const auto read = nlohmann::json::parse(test::read_file(folder / "failure.json"));
  EXPECT_EQ(read["failed"], "launcher");
  EXPECT_TRUE(read["rank"].is_null());
  EXPECT_EQ(read["rejected_connections"], 1);
  EXPECT_EQ(read["rejections"][0]["reason"], "wrong token");
}

TEST(FailureReport, OfManyRanksTheFirstAreShown) {
  const Layout many = Layout::ptd(1, 1, 40);
  FailureFacts facts{
      many, {39, true, "the connection was closed"}, std::vector<RankStatus>(40), 0, 0, "run/failed-start.json"};
  EXPECT_THAT(to_text(facts), HasSubstr("  rank 15: did not join\n  ... and 23 more ranks: see failed-start.json\n"));
}

TEST(FailureReport, TheFileHoldsTheSame) {
  const test::TempFolder folder;
  FailureFacts facts = lost();
  facts.file = folder / "failure.json";
  write_failure(facts, null_log());
  const auto read = nlohmann::json::parse(test::read_file(folder / "failure.json"));
  EXPECT_EQ(read["failed"], "rank");
  EXPECT_EQ(read["rank"], 2);
  EXPECT_EQ(read["lost"], true);
  EXPECT_EQ(read["reason"], "killed by signal 9 (Killed)");
  ASSERT_EQ(read["ranks"].size(), 4u);
  EXPECT_EQ(read["ranks"][3]["state"], "missing");
  EXPECT_EQ(read["ranks"][1]["position"], "step 118, 0F3");
  EXPECT_EQ(read["ranks"][2]["pid"], 4211);
  EXPECT_EQ(read["ranks"][2]["position_age_s"], 0.42);
}

TEST(FailureReport, AFileThatCannotBeWrittenIsReportedInTheLog) {
  class Lines final : public Log {
   public:
    bool enabled(LogLevel) const noexcept override { return true; }
    void write(LogLevel, std::string_view line) noexcept override { text += line; }
    std::string text;
  } log;
  FailureFacts facts = lost();
  facts.file = "/no/failure.json";
  write_failure(facts, log);
  EXPECT_THAT(log.text, HasSubstr("/no/failure.json: cannot be written: No such file or directory"));
}

} // namespace
} // namespace triax::launch
