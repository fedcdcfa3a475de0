// SPDX-License-Identifier: Apache-2.0
// triax train with ranks as processes, over comm-ucx: reports when a rank or the launcher fails, hangs, or is stopped
// or killed.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using TrainFailures = ProcessRun;

TEST_F(TrainFailures, NameAKilledRankAndEndAllOthers) {
  for (const std::size_t victim : {std::size_t{0}, std::size_t{3}}) {
    TrainProcess job = start_endless_run();
    const std::vector<pid_t> ranks = job.ranks();
    ASSERT_EQ(ranks.size(), 4u) << job.err();
    send_signal(ranks[victim], SIGKILL);
    EXPECT_EQ(job.wait(), 1);
    for (const pid_t rank : ranks) EXPECT_FALSE(alive(rank));
    const std::string log = job.err();
    EXPECT_THAT(log, HasSubstr(" error launcher: rank " + std::to_string(victim) + " (pipeline "));
    EXPECT_THAT(log, ContainsRegex(", pid " + std::to_string(ranks[victim]) +
                                   "\\) was lost ((during or )?after step |before the end of its first step)"));
    EXPECT_THAT(
        log,
        ContainsRegex(
            ": killed by signal 9 \\(Killed\\)\n  last position: (starting|unknown|[^\n]* \\([0-9.]+ s ago\\))\n"));
    EXPECT_THAT(log, ContainsRegex("\n  rank 1: (after )?step "));
    EXPECT_THAT(log, HasSubstr("\n  all ranks stopped after "));
    const Json failure = Json::parse(read_file(work_ / "run/failure.json"));
    EXPECT_EQ(failure["rank"], victim);
    EXPECT_EQ(failure["ranks"][victim]["pid"], ranks[victim]);
  }
}

TEST_F(TrainFailures, ARankThatIsNotReadyIsNamed) {
  TrainProcess job = start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
                            "optimizer.rank=3", "optimizer.where=prepare", "optimizer.hangs=true"});
  const std::string line = "starting: 3 of 4 ranks ready, waiting for rank 3 to prepare the first step\n";
  while (job.err().find(line) == std::string::npos && !job.ended()) ::usleep(5000);
  EXPECT_FALSE(job.ended()) << job.err();
  if (!job.ended()) send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 128 + SIGTERM);
}

/// Rank 3 does not return from a plugin call, and the others wait for it.
TEST_F(TrainFailures, ARankThatHangsInAPluginIsNamedWithTheCall) {
  const std::string path = "plugins.path=[\"" TEST_PLUGINS "\"]";
  {
    TrainProcess job = start({path, "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2", "optimizer.rank=3",
                              "optimizer.where=step", "optimizer.hangs=true", "train.stall_timeout_s=3"});
    const std::vector<pid_t> ranks = job.ranks();
    EXPECT_EQ(job.wait(), 1);
    for (const pid_t rank : ranks) EXPECT_FALSE(alive(rank));
    const std::string log = job.err();
    EXPECT_THAT(log,
                ContainsRegex("\nrank 3: [^\n]* error: pipeline 1, data 0, tensor 1, step 2, 1OPT_STEP: no progress "
                              "for 3[.0-9]* s: in step\\(\\) of plugin \"optim-faulty\"\n"));
    EXPECT_EQ(log.find(" error: "), log.rfind(" error: ")) << log; // no other rank is blamed
    EXPECT_THAT(log,
                ContainsRegex(" error launcher: rank 3 \\(pipeline 1, data 0, tensor 1; [^\n]*\\) is stuck after step "
                              "1: step 2, 1OPT_STEP: no progress for "));
    EXPECT_THAT(log,
                ContainsRegex("\n  last position: step 2, 1OPT_STEP, in step\\(\\) of plugin \"optim-faulty\" for "));
    EXPECT_THAT(log, ContainsRegex("\n  rank 2: step 2, 1OPT_STEP|\n  rank 2: (after )?step "));
    const Json failure = Json::parse(read_file(work_ / "run/failure.json"));
    EXPECT_EQ(failure["rank"], 3);
    EXPECT_EQ(failure["stuck"], true);
  }
  TrainProcess job = start({"comm.plugin=comm-faulty", "comm.inner=comm-ucx", "comm.fault=hang_post", "comm.rank=1",
                            "train.stall_timeout_s=3"});
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(),
              ContainsRegex("\nrank 1: [^\n]* error: pipeline 0, data 0, tensor 1, before its first step: no progress "
                            "for 3[.0-9]* s: in all_reduce\\(\\) of plugin \"comm-faulty\"\n"));
  EXPECT_THAT(job.err(),
              ContainsRegex(" error launcher: rank 1 \\([^\n]*\\) is stuck before the end of its first step: "));
}

TEST_F(TrainFailures, ARankThatIsStoppedIsReportedByTheStallTimeout) {
  TrainProcess job = start_endless_run({"train.stall_timeout_s=5"});
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 4u) << job.err();
  send_signal(ranks[2], SIGSTOP);
  EXPECT_EQ(job.wait(), 1);
  for (const pid_t rank : ranks) EXPECT_FALSE(alive(rank));
  EXPECT_THAT(job.err(), HasSubstr(" error launcher: rank 2 (pipeline 1, data 0, tensor 0; "));
  EXPECT_THAT(job.err(), HasSubstr("no message from it for 5 s"));
  EXPECT_THAT(job.err(), HasSubstr("train.stall_timeout_s"));
  // By then all others wait for it, directly or through another rank.
  for (const char* rank : {"0", "1", "3"})
    EXPECT_THAT(job.err(),
                ContainsRegex(std::string("\n  rank ") + rank + ": [^\n]*waiting for [^\n]* through comm-ucx\n"));
}

TEST_F(TrainFailures, ALauncherThatIsStoppedIsBlamedAndNoRank) {
  TrainProcess job = start_endless_run({"train.stall_timeout_s=1"});
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 4u) << job.err();
  send_signal(job.pid(), SIGSTOP);
  for (const pid_t rank : ranks)
    while (alive(rank)) ::usleep(5000); // until they fail
  send_signal(job.pid(), SIGCONT);
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr(" error launcher: launcher failed (no rank failed) after step "));
  EXPECT_THAT(job.err(), ContainsRegex("the job server did not run for [0-9.]+ s \\(its process was stopped"));
  EXPECT_THAT(job.err(), HasSubstr("train.stall_timeout_s = 1 s"));
  EXPECT_THAT(job.err(), Not(HasSubstr("was lost")));
  const Json failure = Json::parse(read_file(work_ / "run/failure.json"));
  EXPECT_EQ(failure["failed"], "launcher");
  EXPECT_TRUE(failure["rank"].is_null());
}

/// True if the launcher's child has executed the program as a rank: its arguments contain "--".
bool has_executed(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  const std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return words.empty() || words.find(std::string("\0--\0", 4)) != std::string::npos; // empty: ended
}

TEST_F(TrainFailures, ARankThatDoesNotJoinIsNamed) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    TrainProcess job = start({"launch.start_timeout_s=3"});
    std::vector<pid_t> ranks;
    while ((ranks = job.ranks()).size() < 4 && !job.ended()) {
    }
    ASSERT_EQ(ranks.size(), 4u) << job.err();
    for (const std::size_t rank : {2, 3}) {
      while (!has_executed(ranks[rank])) { // a rank stopped before its exec would block the launcher
      }
      send_signal(ranks[rank], SIGSTOP);
    }
    // A process with one thread has not tried to join yet.
    if (threads_of(ranks[2]) != 1 || threads_of(ranks[3]) != 1) continue;
    EXPECT_EQ(job.wait(), 1);
    EXPECT_THAT(job.err(), HasSubstr("starting: 2 of 4 ranks joined, waiting for ranks 2, 3 to join\n"));
    EXPECT_THAT(job.err(),
                HasSubstr(" error launcher: rank 2 (pipeline 1, data 0, tensor 0) was lost before the end of "
                          "its first step: did not join within 3 s (launch.start_timeout_s); missing ranks: "
                          "2, 3\n  last position: did not join\n"));
    for (const pid_t rank : ranks) EXPECT_FALSE(alive(rank));
    return;
  }
  FAIL() << "no rank could be stopped before it joined";
}

TEST_F(TrainFailures, TheErrorOfARankThatIsBeingMadeIsReportedOnce) {
  {
    TrainProcess job = start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty",
                              "optimizer.lr=1e-2", "optimizer.rank=3", "optimizer.where=prepare"});
    EXPECT_EQ(job.wait(), 1);
    const std::string log = job.err();
    EXPECT_THAT(log, HasSubstr("out of luck"));
    EXPECT_EQ(log.find("out of luck"), log.rfind("out of luck")) << log;
    EXPECT_THAT(log, HasSubstr(" error launcher: rank 3 (pipeline 1, data 0, tensor 1; "));
  }
  TrainProcess job = start({"comm.transports=nonsense"}); // before any rank starts
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr("transports = \"nonsense\": "));
  EXPECT_THAT(job.err(), HasSubstr("this machine has the transports "));
}

TEST_F(TrainFailures, TheErrorOfARankIsReportedOnce) {
  TrainProcess job = start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
                            "optimizer.rank=3", "optimizer.where=step"});
  EXPECT_EQ(job.wait(), 1);
  const std::string log = job.err();
  EXPECT_THAT(log, HasSubstr(" error: pipeline 1, data 0, tensor 1, step 2, 1OPT_STEP, in step() of plugin "
                             "\"optim-faulty\": out of luck\n"
                             "rank 3:   try again\n"));
  EXPECT_EQ(log.find("out of luck"), log.rfind("out of luck"));
  EXPECT_THAT(log, HasSubstr(" error launcher: rank 3 (pipeline 1, data 0, tensor 1; "));
  EXPECT_THAT(log, HasSubstr(") failed after step 1\n"));
  EXPECT_THAT(read_file(work_ / "run/rank-3.log"), HasSubstr(" error rank 3: pipeline 1, data 0, tensor 1, step 2"));
}

/// The launcher knows how its child ended, and the rank sends its position before it ends.
TEST_F(TrainFailures, ARankThatEndsItsProcessIsReportedWithItsStatusAndPosition) {
  const auto lost = [this](const std::string& how) {
    TrainProcess job =
        start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
               "optimizer.rank=3", "optimizer.where=step", "optimizer." + how, "optimizer.status=7"});
    EXPECT_EQ(job.wait(), 1);
    const std::string log = job.err();
    EXPECT_EQ(log.find(" error"), log.rfind(" error")) << log; // the launcher's report is the only one
    const std::size_t begin = log.find(") was lost ");
    return begin == std::string::npos ? log : log.substr(begin, log.find("\n  rank 0: ") - begin);
  };
  const std::string position =
      "  last position: step 2, 1OPT_STEP, in step\\(\\) of plugin \"optim-faulty\" "
      "\\([0-9.]+ s ago\\)\n";
  const std::string step_2 = "was lost (after step 1|during or after step 2): "; // rank 0 may have recorded step 2
  const std::string hint = "report it, with the last position, to its author$";
#ifdef __SANITIZE_ADDRESS__
  const std::string ended = step_2 + "ended with status [17]\n"; // exit() looks for leaks
#else
  const std::string ended = step_2 + "ended with status 7\n";
#endif
  EXPECT_THAT(lost("exits=true"),
              ContainsRegex(ended + position + "  a plugin that ends its process has a defect: " + hint));
  TrainProcess refused =
      start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
             "optimizer.rank=3", "optimizer.where=prepare", "optimizer.exits_immediately=true", "optimizer.status=2"});
  EXPECT_EQ(refused.wait(), 1);
  EXPECT_THAT(refused.err(), ContainsRegex("ended with status 2\n(.*\n)*  this rank refused the run, and its message"));
  // After _exit() only a heartbeat's position is known.
  EXPECT_THAT(lost("exits_immediately=true"), ContainsRegex("after step [12]: ended with status 7\n  last position: "));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // a sanitizer reports the signal itself
  EXPECT_THAT(lost("crashes=null"), ContainsRegex(step_2 + "killed by signal 11 \\(Segmentation fault\\)\n" + position +
                                                  "  a plugin that crashes has a defect: " + hint));
  TrainProcess job = start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
                            "optimizer.rank=3", "optimizer.where=prepare", "optimizer.crashes=null"});
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), ContainsRegex("\n  last position: starting, in prepare\\(\\) of plugin \"optim-faulty\" "));
#endif
}

/// Kills ranks or the launcher at random times; all processes end. TRIAX_KILLS sets the number of kills.
TEST_F(TrainFailures, EndWheneverAProcessIsKilled) {
  const char* wanted = std::getenv("TRIAX_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 8;
  std::mt19937 random(20260101);
  for (int kill = 0; kill < kills; ++kill) {
    TrainProcess job = start({"train.steps=1000000"});
    ::usleep(std::uniform_int_distribution<useconds_t>(0, 900'000)(random));
    const std::vector<pid_t> ranks = job.ranks();
    std::vector<pid_t> all = ranks;
    all.push_back(job.pid());
    const pid_t victim = all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
    send_signal(victim, SIGKILL);
    const int status = job.wait();
    for (const pid_t rank : ranks)
      while (alive(rank)) ::usleep(5000);
    const std::string log = job.err();
    if (victim == all.back()) {
      EXPECT_EQ(status, 128 + SIGKILL) << kill << ": " << log;
    } else if (log.find(" was killed by SIGKILL") != std::string::npos) {
      EXPECT_EQ(status, 2) << kill << ": before the ranks, the process that asks a plugin: " << log;
    } else {
      EXPECT_EQ(status, 1) << kill << ": " << log;
      EXPECT_THAT(log, HasSubstr("killed by signal 9")) << kill << ": victim " << victim;
    }
  }
}

} // namespace
} // namespace triax::test
