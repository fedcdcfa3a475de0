// SPDX-License-Identifier: Apache-2.0
// triax train --max-restarts: a run in which a rank fails or is lost restarts and continues.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class TrainRestarts : public ProcessRun {
 protected:
  TrainProcess go(int restarts, const std::vector<std::string>& sets, std::vector<std::string> flags = {}) const {
    std::vector<std::string> arguments = {"train", "run.toml", "--max-restarts", std::to_string(restarts)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return {work_.path(), "triax", arguments};
  }
  /// An endless run that saves each step.
  TrainProcess go_on(int restarts, const std::vector<std::string>& flags = {}) const {
    return go(restarts, {"train.steps=1000000", "checkpoint.every=1", "checkpoint.resume=auto"}, flags);
  }

  std::int64_t last_step() const {
    std::ifstream lines(work_ / "run/metrics.jsonl"); // may not be there yet
    std::int64_t last = 0;
    for (std::string line; std::getline(lines, line);)
      if (const Json record = Json::parse(line, nullptr, false); record.is_object()) last = record["step"];
    return last;
  }
  /// Waits until the run has done `count` more steps since `before`.
  void wait_for_steps(TrainProcess& job, std::int64_t before, std::int64_t count) const {
    while (last_step() < before + count && !job.ended()) ::usleep(5000);
  }
  /// Those of the present start.
  std::vector<pid_t> ranks(const TrainProcess& job) const {
    const std::vector<pid_t> copies = children_of(job.pid());
    return copies.empty() ? copies : children_of(copies.back());
  }
  /// Waits for a restart, and for steps of it.
  void wait_for_restart(TrainProcess& job, const std::string& line) const {
    while (job.err().find(line) == std::string::npos && !job.ended()) ::usleep(5000);
    wait_for_steps(job, last_step(), 2);
  }
};

TEST_F(TrainRestarts, ALostRankOrLauncherRestartsTheRunFromItsLastCheckpoint) {
  TrainProcess job = go_on(3, {"--json"});
  wait_for_steps(job, 0, 3);
  ASSERT_EQ(ranks(job).size(), 4u) << job.err();
  send_signal(ranks(job)[2], SIGKILL);
  wait_for_restart(job, " warning launcher: restart 1 of 3: rank 2: killed by signal 9 (Killed)\n");
  const std::vector<pid_t> orphans = ranks(job);
  ASSERT_EQ(orphans.size(), 4u) << job.err();
  send_signal(children_of(job.pid())[0], SIGKILL);
  wait_for_restart(job, " warning launcher: restart 2 of 3: the process of the run was killed by signal 9 (Killed)\n");
  for (const pid_t orphan : orphans) EXPECT_TRUE(ends_soon(orphan));
  ASSERT_FALSE(job.ended()) << job.err();
  send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 75) << job.err();
  EXPECT_THAT(job.err(), ContainsRegex(" info launcher: continues after step [0-9]+ from "));
  EXPECT_THAT(job.err(),
              ContainsRegex("\nnext: to continue: [^\n]* train run.toml --max-restarts 3 --set train.steps=1000000 "
                            "[^\n]*--set checkpoint.resume=auto\n"));
  EXPECT_THAT(read_file(work_ / "run/launcher.log"), HasSubstr("restart 2 of 3: "));
  const Json result = Json::parse(job.out());
  EXPECT_EQ(result["outcome"], "stopped");
  EXPECT_EQ(result["restarts"], 2);
  const auto done = losses("run");
  EXPECT_EQ(static_cast<std::int64_t>(done.size()), result["last_step"]);
  TrainProcess whole = start({"train.steps=1000000", "train.stop_at=" + std::to_string(done.size()), "run.dir=whole"});
  EXPECT_EQ(whole.wait(), 0) << whole.err();
  EXPECT_EQ(done, losses("whole"));
}

TEST_F(TrainRestarts, TheTimeLimitIsForAllStarts) {
  TrainProcess job = go(1, {"train.steps=1000000", "checkpoint.every=1", "train.time_limit=1h"});
  wait_for_steps(job, 0, 3);
  ::sleep(2); // of the limit in seconds: a limit that began with the restart would be 3599 s
  send_signal(ranks(job).at(0), SIGKILL);
  wait_for_restart(job, "restart 1 of 1: ");
  send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 75) << job.err();
  EXPECT_THAT(read_file(work_ / "run/resolved.toml"),
              ContainsRegex("time_limit = \"(3[0-4][0-9][0-9]|35[0-8][0-9]|359[0-8])s\""));
}

TEST_F(TrainRestarts, TheRunEndsWhenTheyAreUsed) {
  TrainProcess job = go_on(1, {"--json"});
  for (int kill = 0; kill < 2; ++kill) {
    wait_for_steps(job, last_step(), 2);
    while (ranks(job).size() != 4 && !job.ended()) ::usleep(5000);
    send_signal(ranks(job).at(1), SIGKILL);
    if (kill == 0) wait_for_restart(job, "restart 1 of 1: ");
  }
  EXPECT_EQ(job.wait(), 1) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("\nnot restarted: 1 of 1 restarts are used\n"));
  const Json result = Json::parse(job.out());
  EXPECT_EQ(result["outcome"], "failed");
  EXPECT_EQ(result["exit_status"], 1);
  EXPECT_EQ(result["restarts"], 1);
  EXPECT_EQ(result["rank"], 1);
}

TEST_F(TrainRestarts, AnErrorThatRepeatsEndsTheRun) {
  const std::vector<std::string> faulty = {"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty",
                                           "optimizer.lr=1e-2", "optimizer.rank=1", "optimizer.where=step"};
  TrainProcess job = go(5, faulty);
  EXPECT_EQ(job.wait(), 1) << job.err();
  EXPECT_THAT(job.err(), ContainsRegex(" warning launcher: restart 1 of 5: rank 1: step 2, "));
  EXPECT_THAT(job.err(), Not(HasSubstr("restart 2 of 5")));
  EXPECT_THAT(job.err(), HasSubstr("\nnot restarted: the same error at the same step\n"));
}

/// The first step of a start that continues fails.
TEST_F(TrainRestarts, AFailureReportCountsTheStepsOfEarlierStarts) {
  const std::vector<std::string> faulty = {"plugins.path=[\"" TEST_PLUGINS "\"]",
                                           "optimizer.plugin=optim-faulty",
                                           "optimizer.lr=1e-2",
                                           "optimizer.rank=1",
                                           "optimizer.where=step",
                                           "checkpoint.resume=auto"};
  const auto with = [&](std::vector<std::string> sets) {
    sets.insert(sets.end(), faulty.begin(), faulty.end());
    return sets;
  };
  TrainProcess first = go(0, with({"train.stop_at=3", "optimizer.step=4"}));
  EXPECT_EQ(first.wait(), 0) << first.err();
  TrainProcess second = go(0, with({"optimizer.step=1"}));
  EXPECT_EQ(second.wait(), 1) << second.err();
  EXPECT_THAT(second.err(), ContainsRegex("rank 1 \\(.*\\) failed after step 3\n"));
  EXPECT_EQ(Json::parse(read_file(work_ / "run/failure.json"))["last_step"], 3);
}

/// Another rank may report it first.
TEST_F(TrainRestarts, AnErrorOfAllRanksThatRepeatsEndsTheRun) {
  for (int run = 0; run < 3; ++run) {
    TrainProcess job = go(5, {"optimizer.lr=1e30", "run.dir=run-" + std::to_string(run)});
    EXPECT_EQ(job.wait(), 1) << job.err();
    EXPECT_THAT(job.err(), Not(HasSubstr("restart 2 of 5")));
    EXPECT_THAT(job.err(), HasSubstr("\nnot restarted: the same error at the same step\n"));
  }
}

#ifndef __SANITIZE_THREAD__ // which turns the signal into an exit
/// The process of all ranks crashes. With AddressSanitizer, it does not report how.
TEST_F(TrainRestarts, RanksAsThreadsAreRestartedToo) {
  TrainProcess job =
      go(1, {"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
             "optimizer.rank=1", "optimizer.where=step", "optimizer.crashes=abort", "comm.plugin=comm-local"});
  EXPECT_EQ(job.wait(), 128 + SIGABRT) << job.err();
  EXPECT_THAT(job.err(), ContainsRegex(" warning rank 0: restart 1 of 1: (rank 1: crashed with SIGABRT \\(Aborted\\): "
                                       "step 2, |the process of the run was killed by signal 6 \\(Aborted\\)\n)"));
  EXPECT_THAT(job.err(),
              ContainsRegex("\nnot restarted: (the same error at the same step|1 of 1 restarts are used)\n"));
}
#endif

TEST_F(TrainRestarts, ASignalEndsTheRunAsWithoutThem) {
  for (const bool to_all : {false, true}) {
    TrainProcess job = go_on(3);
    wait_for_steps(job, last_step(), 2);
    const std::vector<pid_t> all = ranks(job);
    if (to_all) { // as with Ctrl-C in a terminal
      for (const pid_t rank : all) send_signal(rank, SIGINT);
      send_signal(children_of(job.pid()).at(0), SIGINT);
    }
    send_signal(job.pid(), SIGINT);
    EXPECT_EQ(job.wait(), 75) << job.err();
    EXPECT_THAT(job.err(), HasSubstr("stopped by SIGINT after step "));
    EXPECT_THAT(job.err(), Not(HasSubstr(": restart ")));
    for (const pid_t rank : all) EXPECT_TRUE(ends_soon(rank));
  }
}

TEST_F(TrainRestarts, TwoSignalsEndItAtOnce) {
  TrainProcess job = go_on(3);
  wait_for_steps(job, 0, 2);
  const std::vector<pid_t> all = ranks(job);
  for (const pid_t rank : all) send_signal(rank, SIGSTOP); // they cannot end a step
  send_signal(job.pid(), SIGTERM);
  while (job.err().find("a second signal ends the process immediately") == std::string::npos) ::usleep(5000);
  send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 143) << job.err();
  for (const pid_t rank : all) EXPECT_TRUE(ends_soon(rank));
}

TEST_F(TrainRestarts, AfterFreshARestartContinues) {
  ASSERT_EQ(start({"train.steps=2"}).wait(), 0);
  TrainProcess job = go_on(1, {"--fresh"});
  wait_for_steps(job, last_step(), 1);
  wait_for_steps(job, 0, 4);
  send_signal(ranks(job).at(0), SIGKILL);
  wait_for_restart(job, "restart 1 of 1: ");
  send_signal(job.pid(), SIGTERM);
  EXPECT_EQ(job.wait(), 75) << job.err();
  EXPECT_TRUE(std::filesystem::exists(work_ / "run/checkpoints-1/step-00000002"));
  EXPECT_FALSE(std::filesystem::exists(work_ / "run/checkpoints-2"));
  EXPECT_EQ(static_cast<std::int64_t>(losses("run").size()), last_step());
}

TEST_F(TrainRestarts, WhatIsRefusedIsNotRestarted) {
  TrainProcess wrong = go(3, {"train.steps=ten"});
  EXPECT_EQ(wrong.wait(), 2);
  EXPECT_THAT(wrong.err(), Not(HasSubstr("restart")));
  TrainProcess launched(work_.path(), "rank-0", {"train", "run.toml", "--max-restarts", "3"},
                        variables(0, 4, free_port()));
  EXPECT_EQ(launched.wait(), 2);
  EXPECT_THAT(launched.err(), MatchesRegex("--max-restarts = 3: torchrun has started the ranks, so Triax cannot start "
                                           "them again\n  leave it out, .*\n"));
}

} // namespace
} // namespace triax::test
