// SPDX-License-Identifier: Apache-2.0
// Ranks as processes, over shared memory and over TCP; the end of a group when one of them is killed.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <memory>
#include <string>
#include <vector>

#include "control/child.hpp"
#include "support/installation.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using triax::text;
using triax::control::test::Child;

/// Exit status and stderr of a rank.
struct End {
  int status = 0; // from waitpid()
  std::string words;
  bool well() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  bool refused() const { return WIFEXITED(status) && WEXITSTATUS(status) == 3; }
};

std::vector<End> run(const std::string& scenario, int ranks, const std::string& transports) {
  const triax::test::TempFolder folder;
  std::vector<std::unique_ptr<Child>> children;
  const auto words = [&](int rank) { return folder / text("words.{}", rank); };
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(std::make_unique<Child>(
        std::vector<std::string>{(triax::test::installation() / "bin/comm-ucx-rank").string(), scenario,
                                 std::to_string(rank), std::to_string(ranks), folder.path().string(), transports},
        words(rank)));
  }
  std::vector<End> ends;
  for (int rank = 0; rank < ranks; ++rank) {
    const int status = children[static_cast<std::size_t>(rank)]->wait();
    ends.push_back({status, triax::test::read_file(words(rank))});
  }
  return ends;
}

class Processes : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Over, Processes, ::testing::Values("", "tcp,self"),
                         [](const auto& each) { return *each.param ? "tcp" : "memory"; });

TEST_P(Processes, ReduceAndExchangeAllSizes) {
  for (const int ranks : {2, 4}) {
    for (const End& end : run("everything", ranks, GetParam())) {
      EXPECT_TRUE(end.well());
      EXPECT_THAT(end.words, IsEmpty()); // nor UCX's own log
    }
  }
}

TEST_P(Processes, DeliverMessagesAfterTheSenderHasExited) {
  for (const End& end : run("leaves-after-sending", 2, GetParam())) {
    EXPECT_TRUE(end.well());
    EXPECT_THAT(end.words, IsEmpty());
  }
}

TEST_P(Processes, ReportATransferOfAnotherType) {
  for (const End& end : run("other-type", 2, GetParam())) {
    EXPECT_TRUE(end.refused());
    EXPECT_THAT(end.words, HasSubstr("group world, channel 4: rank 0 sends 6 f32 where rank 1 receives 6 i32"));
  }
}

TEST_P(Processes, AKilledRankEndsTheOthers) {
  for (const char* scenario : {"killed-reducing", "killed-exchanging"}) {
    const std::vector<End> ends = run(scenario, 3, GetParam());
    EXPECT_TRUE(WIFSIGNALED(ends[1].status) && WTERMSIG(ends[1].status) == SIGKILL) << scenario << ends[1].words;
    for (const int rank : {0, 2}) {
      const End& end = ends[static_cast<std::size_t>(rank)];
      EXPECT_TRUE(end.refused()) << scenario << " status " << end.status;
      // Reported by UCX, at this rank's deadline, or by the other rank.
      EXPECT_THAT(end.words,
                  AnyOf(HasSubstr("rank 1 is lost"), HasSubstr("timed out"), HasSubstr("aborted group world")))
          << scenario;
      if (*GetParam()) {
        EXPECT_THAT(end.words, HasSubstr("rank 1 is lost")) << scenario;
      }
    }
  }
}

} // namespace
