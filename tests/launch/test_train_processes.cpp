// triax train with its ranks as processes, over comm-ucx: what they learn, and what is told when one of them goes.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

using TrainProcesses = ProcessRun;

/// steps and losses, as text: the very bits.
std::string losses(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    out += record["step"].dump() + " " + record["loss"].dump() + " " + record["grad_norm"].dump() + "\n";
  }
  return out;
}

TEST_F(TrainProcesses, LearnTheSameBitsAsThreads) {
  Running four = start();
  EXPECT_EQ(four.wait(), 0) << four.err();
  EXPECT_THAT(four.out(), MatchesRegex("trained 10 steps: loss [^\n]*metrics in run/metrics.jsonl\n"));
  EXPECT_THAT(four.err(), HasSubstr("comm-ucx; 4 ranks as processes, "));
  EXPECT_THAT(four.err(), HasSubstr("sent between ranks, all of them together:\n  tensor    comm-ucx  "));
  EXPECT_THAT(four.err(), HasSubstr("\n  pipeline  comm-ucx  "));
  EXPECT_THAT(four.err(), Not(HasSubstr("rank 1: ")));
  Running threads = start({"comm.plugin=comm-local", "run.dir=threads"});
  EXPECT_EQ(threads.wait(), 0) << threads.err();
  EXPECT_THAT(threads.err(), HasSubstr("comm-local; 4 ranks as threads of this process, "));
  EXPECT_EQ(losses(work_ / "run/metrics.jsonl"), losses(work_ / "threads/metrics.jsonl"));
  // What each plugin says it has moved is the same as well.
  const auto moved = [](std::string text) {
    text = text.substr(text.find("sent between"));
    text = text.substr(0, text.find("next:"));
    for (std::size_t at = 0; (at = text.find("comm-local")) != std::string::npos;) text.replace(at, 10, "comm-ucx");
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return text;
  };
  EXPECT_EQ(moved(four.err()), moved(threads.err()));
}

/// A boundary goes in two parts, and the parts are gathered: the pipeline's bytes are fewer, the bits are not.
TEST_F(TrainProcesses, LearnTheSameBitsWhereBoundariesAreScattered) {
  Running whole = start({"train.steps=3"});
  EXPECT_EQ(whole.wait(), 0) << whole.err();
  Running scattered = start({"train.steps=3", "parallel.scatter_gather=true", "run.dir=scattered"});
  EXPECT_EQ(scattered.wait(), 0) << scattered.err();
  EXPECT_EQ(losses(work_ / "run/metrics.jsonl"), losses(work_ / "scattered/metrics.jsonl"));
  const auto bytes = [this](const char* folder, const char* group) {
    std::istringstream lines(read_file(work_ / folder / "metrics.jsonl"));
    std::string line;
    std::getline(lines, line);
    return Json::parse(line)["comm"][group]["bytes_out"].get<std::int64_t>();
  };
  EXPECT_LT(bytes("scattered", "pipeline"), bytes("run", "pipeline"));
  EXPECT_GT(bytes("scattered", "tensor"), bytes("run", "tensor"));
}

TEST_F(TrainProcesses, AreThreadsWhereOneAxisNeedsThat) {
  Running mixed = start({"comm.tensor.plugin=comm-local", "train.steps=3"});
  EXPECT_EQ(mixed.wait(), 0) << mixed.err();
  EXPECT_THAT(mixed.err(), HasSubstr("comm-local comm-ucx; 4 ranks as threads of this process, "));
  EXPECT_THAT(mixed.err(), HasSubstr("\n  tensor    comm-local  "));
  EXPECT_THAT(mixed.err(), HasSubstr("\n  pipeline  comm-ucx    "));
}

TEST_F(TrainProcesses, ARankThatIsKilledIsNamedAndNobodyStays) {
  for (const std::size_t victim : {std::size_t{0}, std::size_t{3}}) {
    Running job = start_for_ever();
    const std::vector<pid_t> ranks = job.ranks();
    ASSERT_EQ(ranks.size(), 4u) << job.err();
    ::kill(ranks[victim], SIGKILL);
    EXPECT_EQ(job.wait(), 1);
    for (const pid_t rank : ranks) EXPECT_FALSE(alive(rank));
    const std::string told = job.err();
    EXPECT_THAT(told, HasSubstr(" error launcher: rank " + std::to_string(victim) + " (pipeline "));
    EXPECT_THAT(told, HasSubstr(", pid " + std::to_string(ranks[victim]) + ") was lost after step "));
    EXPECT_THAT(
        told,
        ContainsRegex(
            ": killed by signal 9 \\(Killed\\)\n  its last place: (unknown|[^\n]* \\(told [0-9.]+ s before\\))\n"));
    EXPECT_THAT(told, ContainsRegex("\n  rank 1: (after )?step "));
    EXPECT_THAT(told, HasSubstr("\n  all ranks stopped after "));
    const Json failure = Json::parse(read_file(work_ / "run/failure.json"));
    EXPECT_EQ(failure["rank"], victim);
    EXPECT_EQ(failure["ranks"][victim]["pid"], ranks[victim]);
  }
}

TEST_F(TrainProcesses, GoWithTheirLauncher) {
  Running job = start_for_ever();
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 4u) << job.err();
  ::kill(job.pid(), SIGKILL);
  EXPECT_EQ(job.wait(), 128 + SIGKILL);
  for (const pid_t rank : ranks)
    while (alive(rank)) ::usleep(5000);
}

TEST_F(TrainProcesses, EndWithTheTerminal) {
  Running job = start_for_ever();
  const std::vector<pid_t> ranks = job.ranks();
  ::kill(job.pid(), SIGHUP);
  EXPECT_EQ(job.wait(), 128 + SIGHUP);
  for (const pid_t rank : ranks)
    while (alive(rank)) ::usleep(5000);
}

TEST_F(TrainProcesses, ARankThatIsStoppedIsToldByTheStallTimeout) {
  Running job = start_for_ever({"train.stall_timeout_s=5"});
  const std::vector<pid_t> ranks = job.ranks();
  ASSERT_EQ(ranks.size(), 4u) << job.err();
  ::kill(ranks[2], SIGSTOP);
  EXPECT_EQ(job.wait(), 1);
  for (const pid_t rank : ranks) EXPECT_FALSE(alive(rank));
  EXPECT_THAT(job.err(), HasSubstr(" error launcher: rank 2 (pipeline 1, data 0, tensor 0; "));
  EXPECT_THAT(job.err(), HasSubstr("nothing was heard from it for 5 s"));
  EXPECT_THAT(job.err(), HasSubstr("train.stall_timeout_s"));
  // By then all others wait for it, or for one that does.
  for (const char* rank : {"0", "1", "3"})
    EXPECT_THAT(job.err(),
                ContainsRegex(std::string("\n  rank ") + rank + ": [^\n]*waiting for [^\n]* through comm-ucx\n"));
}

TEST_F(TrainProcesses, AnInterruptedRunEndsAfterAStepOfAllRanks) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Running job = start_for_ever();
    ::kill(job.pid(), signal);
    EXPECT_EQ(job.wait(), 128 + signal);
    const std::string recorded = losses(work_ / "run/metrics.jsonl");
    const auto steps = std::to_string(std::count(recorded.begin(), recorded.end(), '\n'));
    EXPECT_THAT(job.err(), HasSubstr(std::string("stopped by ") + (signal == SIGINT ? "SIGINT" : "SIGTERM") +
                                     " after step " + steps + " of 1000000; metrics in run/metrics.jsonl\n"));
  }
}

TEST_F(TrainProcesses, ASignalToAllOfThemIsOneWish) {
  Running job = start_for_ever(); // as a terminal's Ctrl-C sends it
  for (const pid_t rank : job.ranks()) ::kill(rank, SIGINT);
  ::kill(job.pid(), SIGINT);
  EXPECT_EQ(job.wait(), 128 + SIGINT) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("stopped by SIGINT after step "));
}

TEST_F(TrainProcesses, ASignalBeforeTheFirstStepEndsThemAtOnce) {
  for (int moment = 0; moment < 5; ++moment) {
    Running job = start({"train.steps=1000000"});
    ::usleep(static_cast<useconds_t>(moment) * 40'000);
    const std::vector<pid_t> ranks = job.ranks();
    for (const pid_t rank : ranks) ::kill(rank, SIGINT); // as a terminal does
    ::kill(job.pid(), SIGINT);
    EXPECT_EQ(job.wait(), 128 + SIGINT) << job.err();
    for (const pid_t rank : ranks) EXPECT_FALSE(alive(rank));
  }
}

TEST_F(TrainProcesses, TheErrorOfARankThatIsBeingMadeIsToldOnce) {
  {
    Running job = start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
                         "optimizer.rank=3", "optimizer.where=prepare"});
    EXPECT_EQ(job.wait(), 1);
    const std::string told = job.err();
    EXPECT_THAT(told, HasSubstr("out of luck"));
    EXPECT_EQ(told.find("out of luck"), told.rfind("out of luck")) << told;
    EXPECT_THAT(told, HasSubstr(" error launcher: rank 3 (pipeline 1, data 0, tensor 1; "));
  }
  Running job = start({"comm.transports=nonsense"});
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr("transports and devices say what it may use"));
}

TEST_F(TrainProcesses, ARunThatIsNoFileIsRefused) {
  Running job(work_.path(), "triax", {"train", "/dev/stdin"});
  EXPECT_EQ(job.wait(), 2);
}

TEST_F(TrainProcesses, WhatOfLaunchCannotWorkIsRefusedBeforeAnyStarts) {
  const std::string sets = " run.toml --set launch.interface=eth77 --set launch.token_file=nowhere";
  const Outcome checked = run(work_.path(), "check" + sets, "2>&1 >/dev/null");
  EXPECT_EQ(checked.status, 2);
  EXPECT_THAT(checked.text, HasSubstr("--set: launch.interface: \"eth77\" is no interface of this machine, "));
  EXPECT_THAT(checked.text, HasSubstr("/nowhere: there is no such file\n"));
  const Outcome trained = run(work_.path(), "train" + sets, "2>&1");
  EXPECT_EQ(trained.status, 2);
  EXPECT_EQ(trained.text, checked.text);
  EXPECT_FALSE(std::filesystem::exists(work_ / "run"));
  EXPECT_EQ(run(work_.path(), "check --no-device" + sets, "2>&1").status, 0);
  const std::string threads = " --set comm.plugin=comm-local"; // need nothing of [launch]
  EXPECT_EQ(run(work_.path(), "check" + sets + threads, "2>&1").status, 0);
}

TEST_F(TrainProcesses, TheErrorOfARankIsToldOnce) {
  Running job = start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
                       "optimizer.rank=3", "optimizer.where=step"});
  EXPECT_EQ(job.wait(), 1);
  const std::string told = job.err();
  EXPECT_THAT(told, HasSubstr(" error: pipeline 1, data 0, tensor 1, step 2, OPT_STEP: out of luck\n"
                              "rank 3:   try again\n"));
  EXPECT_EQ(told.find("out of luck"), told.rfind("out of luck"));
  EXPECT_THAT(told, HasSubstr(" error launcher: rank 3 (pipeline 1, data 0, tensor 1; "));
  EXPECT_THAT(told, HasSubstr(") gave up after step 1\n"));
  EXPECT_THAT(read_file(work_ / "run/rank-3.log"), HasSubstr(" error rank 3: pipeline 1, data 0, tensor 1, step 2"));
}

TEST_F(TrainProcesses, APortInUseIsRefused) {
  const TakenPort taken;
  Running job = start({"launch.port=" + std::to_string(taken.port())});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr(std::to_string(taken.port())));
  EXPECT_THAT(job.err(), HasSubstr("in use"));
  EXPECT_THAT(job.err(), HasSubstr("launch.port"));
}

/// TRIAX_KILLS=100 for more: ranks and launcher are killed at any moment of a job's life, and nothing stays.
TEST_F(TrainProcesses, ComeToAnEndWheneverOneIsKilled) {
  const char* wanted = std::getenv("TRIAX_KILLS");
  const int kills = wanted ? std::atoi(wanted) : 8;
  std::mt19937 random(20260101);
  for (int kill = 0; kill < kills; ++kill) {
    Running job = start({"train.steps=1000000"});
    ::usleep(std::uniform_int_distribution<useconds_t>(0, 900'000)(random));
    const std::vector<pid_t> ranks = job.ranks();
    std::vector<pid_t> all = ranks;
    all.push_back(job.pid());
    const pid_t victim = all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
    ::kill(victim, SIGKILL);
    EXPECT_EQ(job.wait(), victim == all.back() ? 128 + SIGKILL : 1) << kill << ": " << job.err();
    for (const pid_t rank : ranks)
      while (alive(rank)) ::usleep(5000);
    if (victim != all.back()) {
      EXPECT_THAT(job.err(), HasSubstr("killed by signal 9")) << kill << ": victim " << victim;
    }
  }
}

} // namespace
} // namespace triax::test
