// triax train with its ranks as processes, over comm-ucx: what they learn, and what is told when one of them goes.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "golden/program.hpp"
#include "launch/running.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

const char* const kRun = R"([model]
plugin = "model-gpt"
layers = 2
hidden = 16
heads = 2
sequence = 8
dropout = 0.1

[batch]
global = 8

[parallel]
pipeline = 2
tensor = 2

[schedule]
plugin = "sched-1f1b"

[comm]
plugin = "comm-ucx"

[kernels]
plugin = "kernels-reference"

[optimizer]
plugin = "optim-adamw"
lr = 1e-2

[train]
steps = 10

[data]
path = "text"

[run]
dir = "run"
)";

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

class TrainProcesses : public ::testing::Test {
 protected:
  TrainProcesses() {
    write_file(work_ / "run.toml", kRun);
    std::string text;
    for (int i = 0; i < 60; ++i) text += "line " + std::to_string(i * i) + " of a text to learn from\n";
    write_file(work_ / "text.txt", text);
    run(work_.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
  }
  Running start(std::vector<std::string> sets = {}, const std::string& name = "triax",
                const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> arguments = {"train", "run.toml"};
    for (std::string& set : sets) {
      arguments.emplace_back("--set");
      arguments.push_back(std::move(set));
    }
    return {work_.path(), name, arguments, variables};
  }
  /// One that would train for ever, and has taken its first step.
  Running start_for_ever(std::vector<std::string> sets = {}) const {
    std::filesystem::remove(work_ / "run/metrics.jsonl");
    sets.emplace_back("train.steps=1000000");
    Running out = start(sets);
    while (!has_stepped() && !out.ended()) ::usleep(5000);
    return out;
  }
  bool has_stepped() const {
    std::error_code none;
    return std::filesystem::file_size(work_ / "run/metrics.jsonl", none) > 0 && !none;
  }
  /// In the torchrun manner.
  std::vector<std::string> variables(int rank, int world, int port) const {
    return {"RANK=" + std::to_string(rank),
            "LOCAL_RANK=" + std::to_string(rank),
            "WORLD_SIZE=" + std::to_string(world),
            "LOCAL_WORLD_SIZE=" + std::to_string(world),
            "MASTER_ADDR=127.0.0.1",
            "MASTER_PORT=" + std::to_string(port)};
  }

  TempFolder work_;
};

/// A port of loopback, taken for as long as this lives.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(socket_, 1);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~TakenPort() { ::close(socket_); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  int port() const { return port_; }

 private:
  int socket_, port_ = 0;
};

int free_port() {
  return TakenPort().port();
}

TEST_F(TrainProcesses, LearnTheSameBitsAsThreads) {
  Running four = start();
  EXPECT_EQ(four.wait(), 0) << four.err();
  EXPECT_THAT(four.out(), MatchesRegex("trained 10 steps: loss [^\n]*metrics in run/metrics.jsonl\n"));
  EXPECT_THAT(four.err(), HasSubstr("comm-ucx; 4 ranks as processes, "));
  EXPECT_THAT(four.err(), HasSubstr("moved between ranks, all of them together:\n  tensor    comm-ucx  "));
  EXPECT_THAT(four.err(), HasSubstr("\n  pipeline  comm-ucx  "));
  EXPECT_THAT(four.err(), Not(HasSubstr("rank 1: ")));
  Running threads = start({"comm.plugin=comm-local", "run.dir=threads"});
  EXPECT_EQ(threads.wait(), 0) << threads.err();
  EXPECT_THAT(threads.err(), HasSubstr("comm-local; 4 ranks as threads of this process, "));
  EXPECT_EQ(losses(work_ / "run/metrics.jsonl"), losses(work_ / "threads/metrics.jsonl"));
  // What each plugin says it has moved is the same as well.
  const auto moved = [](std::string text) {
    text = text.substr(text.find("moved between"));
    text = text.substr(0, text.find("next:"));
    for (std::size_t at = 0; (at = text.find("comm-local")) != std::string::npos;) text.replace(at, 10, "comm-ucx");
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return text;
  };
  EXPECT_EQ(moved(four.err()), moved(threads.err()));
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
    EXPECT_THAT(told, HasSubstr(": killed by signal 9 (Killed)\n  its last place: "));
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

TEST_F(TrainProcesses, ARankThatNeverComesIsNamed) {
  Running job = start({"launch.start_timeout_s=1"}, "rank-0", variables(0, 4, free_port()));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr("1, 2, 3"));
  EXPECT_THAT(job.err(), HasSubstr("launch.start_timeout_s"));
}

TEST_F(TrainProcesses, RanksThatOthersStartTrainAndTellOfALoss) {
  const int port = free_port();
  const auto start_all = [&](const std::vector<std::string>& sets) {
    std::vector<Running> out;
    for (int rank = 0; rank < 4; ++rank)
      out.push_back(start(sets, "rank-" + std::to_string(rank), variables(rank, 4, port)));
    return out;
  };
  {
    std::vector<Running> ranks = start_all({});
    for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
    EXPECT_THAT(ranks[0].out(), HasSubstr("trained 10 steps: "));
    EXPECT_THAT(ranks[0].err(), HasSubstr("\n  pipeline  comm-ucx  "));
    EXPECT_EQ(ranks[1].out() + ranks[1].err(), "");
  }
  std::filesystem::remove(work_ / "run/metrics.jsonl");
  std::vector<Running> ranks = start_all({"train.steps=1000000"});
  while (!has_stepped() && !ranks[0].ended()) ::usleep(5000);
  ::kill(ranks[2].pid(), SIGKILL);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].wait(), 1);
  EXPECT_THAT(ranks[0].err(), HasSubstr(" error rank 0: rank 2 (pipeline 1, data 0, tensor 0; "));
  EXPECT_THAT(ranks[0].err(), HasSubstr("was lost after step "));
}

TEST_F(TrainProcesses, WhoseServerIsLostSaySo) {
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({"train.steps=1000000"}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  while (!has_stepped() && !ranks[0].ended()) ::usleep(5000);
  ::kill(ranks[0].pid(), SIGKILL);
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(ranks[rank].wait(), 1);
    EXPECT_THAT(ranks[rank].err(), HasSubstr("127.0.0.1:" + std::to_string(port))) << rank;
    EXPECT_THAT(ranks[rank].err(), HasSubstr("lost")) << rank;
  }
}

TEST_F(TrainProcesses, WhatIsRefusedIsPrintedOnceAndNoRankStarts) {
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({"model.heads=3"}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("model.heads = 3 (--set)"));
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(ranks[rank].err(), "") << rank;
  EXPECT_FALSE(std::filesystem::exists(work_ / "run/metrics.jsonl"));
}

TEST_F(TrainProcesses, ARankWithAnotherRunIsRefused) {
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> sets = {"run.dir=folder-" + std::to_string(rank)}; // folders may differ
    if (rank == 2) sets.emplace_back("optimizer.lr=0.5");
    ranks.push_back(start(sets, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  }
  for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_EQ(ranks[2].err(),
            "rank 2 has another run than rank 0:\n  optimizer.lr = 0.5, on rank 0 0.01\n"
            "  start all ranks with the same TOML and the same --set\n");
  for (const std::size_t other : {0, 1, 3}) EXPECT_EQ(ranks[other].err(), "") << other;
}

TEST_F(TrainProcesses, ARankThatCannotOpenItsLogTellsAndEndsTheJob) {
  std::filesystem::create_directories(work_ / "run/rank-2.log");
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 1) << rank.err();
  EXPECT_THAT(ranks[2].err(), HasSubstr("rank-2.log: the log cannot be opened"));
}

TEST_F(TrainProcesses, AnotherNumberOfRanksThanTheLayoutsIsRefused) {
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(start({"parallel.data=1"}, "rank-" + std::to_string(rank), variables(rank, 2, port)));
  for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("does not fit the launcher's 2 ranks"));
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
