// SPDX-License-Identifier: Apache-2.0
// triax train over communicators that lose messages or their process (comm-faulty over comm-ucx), with ranks as
// processes: what is reported, the exit status, and the restart.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class TrainCommunicators : public ProcessRun {
 protected:
  /// Options of comm-faulty for the communicators of one axis, or of all ("comm").
  static std::vector<std::string> faulty(const std::string& table, const std::vector<std::string>& options) {
    std::vector<std::string> out = {table + ".plugin=comm-faulty", table + ".inner=comm-ucx"};
    for (const std::string& option : options) out.push_back(table + "." + option);
    return out;
  }
  /// The same, in a run that ends soon after its ranks wait for what was lost.
  static std::vector<std::string> stalling(const std::string& table, const std::vector<std::string>& options) {
    std::vector<std::string> out = faulty(table, options);
    out.emplace_back("train.stall_timeout_s=2");
    return out;
  }
};

/// Any rank that waits may be the one that is called stuck. The report has a line for each.
TEST_F(TrainCommunicators, ALostTransferIsReportedWithItsActionAndPeer) {
  TrainProcess job = start(stalling("comm.pipeline", {"fault=drop", "rank=1", "at=5"}));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(),
              ContainsRegex(" error launcher: rank [0-3] \\([^\n]*\\) is stuck before the end of its first step: "));
  EXPECT_THAT(job.err(), ContainsRegex("\n  (last position|rank 1): step 1, [^\n]*, waiting for 0RECV_B1 from rank 3 "
                                       "through comm-faulty\n"));
}

TEST_F(TrainCommunicators, ALostCollectiveIsReportedWithItsAxisAndPeer) {
  TrainProcess job = start(stalling("comm.tensor", {"fault=drop", "rank=1", "at=7"}));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(),
              ContainsRegex("\n  (last position|rank 1): step 1, [^\n]*, waiting for [a-z_]* over tensor with "
                            "rank 0 through comm-faulty\n"));
}

TEST_F(TrainCommunicators, ALostPeerThatAPostReportsEndsTheRun) {
  TrainProcess job = start(faulty("comm", {"fault=fail", "axis=tensor", "rank=2", "at=9"}));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(
      job.err(),
      ContainsRegex("\nrank 2: [^\n]* error: [^\n]*, group tensor.2, in [a-z_]*\\(\\) of plugin \"comm-faulty\": "
                    "injected fault: [a-z_]* is post 9: the connection to a peer is lost\n"));
  EXPECT_EQ(job.err().find(" error: "), job.err().rfind(" error: ")) << job.err(); // no other rank is blamed
}

TEST_F(TrainCommunicators, ARankThatNeverJoinsIsNamed) {
  TrainProcess job = start(stalling("comm.tensor", {"fault=hang_join", "rank=3"}));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), AllOf(HasSubstr("rank 3"), HasSubstr("in join() of plugin \"comm-faulty\"")));
}

TEST_F(TrainCommunicators, ARefusalHasThePositionOfTheTable) {
  TrainProcess job = start(faulty("comm.tensor", {"fault=refuse"}));
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(),
              HasSubstr("comm.tensor.plugin \"comm-faulty\" for the tensor axis: fault = \"refuse\" refuses"));
}

/// A step has 54 posts in a tensor group. The first start ends in step 8; the second needs fewer posts than that.
TEST_F(TrainCommunicators, ALostRankIsReportedAndTheRestartedRunHasTheSameBits) {
  std::vector<std::string> sets = faulty("comm.tensor", {"fault=die", "rank=2", "at=400"});
  sets.insert(sets.end(), {"checkpoint.every=1", "checkpoint.resume=auto"});
  TrainProcess once = start(sets);
  EXPECT_EQ(once.wait(), 1);
  EXPECT_THAT(once.err(),
              ContainsRegex(" error launcher: rank 2 \\([^\n]*\\) was lost [^\n]*: killed by signal 9 \\(Killed\\)\n"));
  std::vector<std::string> arguments = {"train", "run.toml", "--max-restarts", "1", "--set", "run.dir=restarted"};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  TrainProcess restarted(work_.path(), "restarted", arguments);
  EXPECT_EQ(restarted.wait(), 0) << restarted.err();
  EXPECT_THAT(restarted.err(), HasSubstr(" warning launcher: restart 1 of 1: rank 2: killed by signal 9 (Killed)\n"));
  TrainProcess plain = start({"run.dir=plain"}, "plain");
  EXPECT_EQ(plain.wait(), 0) << plain.err();
  EXPECT_EQ(losses("restarted").size(), 10u);
  EXPECT_EQ(losses("restarted"), losses("plain"));
}

} // namespace
} // namespace triax::test
