// SPDX-License-Identifier: Apache-2.0
// triax train as a rank that a launcher has started with torchrun's variables: the messages, and which ranks print
// them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "control/connect.hpp"
#include "control/job.hpp"
#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using TrainLaunched = ProcessRun;

TEST_F(TrainLaunched, ARankThatNeverComesIsNamed) {
  std::filesystem::create_directory(work_ / "run");
  const std::string earlier = "{\"step\":1,\"loss\":5.5}\n";
  write_file(work_ / "run/metrics.jsonl", earlier);
  std::vector<std::string> arguments = {"train", "run.toml", "--json", "--set", "launch.start_timeout_s=3"};
  TrainProcess job(work_.path(), "rank-0", arguments, variables(0, 4, free_port()));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr("starting: 1 of 4 ranks joined, waiting for ranks 1-3 to join\n"));
  EXPECT_THAT(job.err(), HasSubstr("rank 0: timed out waiting for ranks 1-3\n"));
  EXPECT_THAT(job.err(), HasSubstr("launch.start_timeout_s = 3"));
  const auto failure = nlohmann::json::parse(read_file(work_ / "run/failed-start.json"));
  const auto result = nlohmann::json::parse(job.out());
  for (const auto& file : {failure, result}) {
    EXPECT_EQ(file["rank"], 1);
    EXPECT_THAT(file["reason"].get<std::string>(), HasSubstr("missing ranks: 1-3"));
  }
  EXPECT_EQ(failure["ranks"][3]["state"], "missing");
  EXPECT_EQ(result["outcome"], "failed");
  EXPECT_EQ(read_file(work_ / "run/metrics.jsonl"), earlier);
}

TEST_F(TrainLaunched, ARankThatCannotJoinSaysWhyAndExits) {
  const std::string unknown_host =
      std::string(64, 'x') + ".invalid"; // too long for a DNS label: no query leaves the machine
  std::vector<std::string> without_server = variables(1, 2, free_port()), unresolvable = without_server;
  for (std::string& one : unresolvable)
    if (one.starts_with("MASTER_ADDR=")) one = "MASTER_ADDR=" + unknown_host;
  const std::vector<std::string> sets = {"parallel.tensor=1", "launch.start_timeout_s=1"};
  TrainProcess alone = start(sets, "alone", without_server), lost = start(sets, "lost", unresolvable);
  for (TrainProcess* rank : {&alone, &lost}) {
    EXPECT_EQ(rank->wait(), 1) << rank->err();
    EXPECT_THAT(rank->err(), HasSubstr("rank 1: cannot connect to the job server at "));
    EXPECT_THAT(rank->err(), HasSubstr("within 1 s: "));
    EXPECT_THAT(rank->err(), HasSubstr("can reach that port (MASTER_ADDR, launch.port)"));
  }
  EXPECT_THAT(alone.err(), HasSubstr("Connection refused"));
  EXPECT_THAT(lost.err(), HasSubstr(unknown_host));
}

TEST_F(TrainLaunched, ARankWithAnotherTokenSaysSoAndRank0NamesIt) {
  for (const char* token : {"wrong", ""}) {
    const int port = free_port();
    std::vector<std::string> zero = variables(0, 2, port), one = variables(1, 2, port);
    zero.emplace_back("TRIAX_JOB_TOKEN=the secret of this job");
    one.emplace_back(std::string("TRIAX_JOB_TOKEN=") + token);
    TrainProcess rank_0 = start({"parallel.tensor=1", "launch.start_timeout_s=2"}, "rank-0", zero);
    TrainProcess rank_1 = start({"parallel.tensor=1", "launch.start_timeout_s=2"}, "rank-1", one);
    EXPECT_EQ(rank_1.wait(), 1) << rank_1.err();
    EXPECT_THAT(rank_1.err(), HasSubstr("refused this rank\n  set the same TRIAX_JOB_TOKEN"));
    EXPECT_EQ(rank_0.wait(), 1) << rank_0.err();
    const std::string reason = std::string("rank 1 from 127.0.0.1: ") + (*token ? "wrong" : "no") + " token";
    EXPECT_THAT(rank_0.err(), HasSubstr("rank 0: the job server rejected 1 connection: " + reason + "\n"));
    EXPECT_THAT(rank_0.err(),
                HasSubstr("timed out waiting for rank 1; the job server rejected 1 connection: " + reason));
    EXPECT_THAT(rank_0.err(), Not(HasSubstr("secret")));
  }
}

/// It cannot say so itself. Several jobs, because the order in which rank 0 learns of it varies.
TEST_F(TrainLaunched, ARankThatIsLostBeforeTheStartIsNamed) {
  for (int i = 0; i < 4; ++i) {
    const int port = free_port();
    TrainProcess rank_0 = start({"parallel.tensor=1"}, "rank-0", variables(0, 2, port));
    { control::enter(control::test::client_of({"127.0.0.1", port}, 1, 2), control::JobAbort()); } // joins, and leaves
    EXPECT_EQ(rank_0.wait(), 1);
    EXPECT_EQ(rank_0.err(), "rank 0: rank 1 was lost: the connection was closed\n");
  }
}

TEST_F(TrainLaunched, RanksThatOthersStartTrainAndReportALoss) {
  const int port = free_port();
  const auto start_all = [&](const std::vector<std::string>& sets) {
    std::vector<TrainProcess> out;
    for (int rank = 0; rank < 4; ++rank)
      out.push_back(start(sets, "rank-" + std::to_string(rank), variables(rank, 4, port)));
    return out;
  };
  {
    std::vector<TrainProcess> ranks = start_all({});
    for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
    EXPECT_THAT(ranks[0].out(), HasSubstr("trained 10 steps: "));
    EXPECT_THAT(ranks[0].err(), HasSubstr("\n  pipeline  comm-ucx  "));
    EXPECT_EQ(ranks[1].out() + ranks[1].err(), "");
  }
  {
    std::vector<TrainProcess> ranks;
    for (int rank = 0; rank < 4; ++rank)
      ranks.emplace_back(work_.path(), "rank-" + std::to_string(rank),
                         std::vector<std::string>{"train", "run.toml", "--json", "--set", "train.steps=2"},
                         variables(rank, 4, port));
    for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
    const auto result = nlohmann::json::parse(ranks[0].out());
    EXPECT_EQ(result["outcome"], "trained");
    EXPECT_EQ(result["steps"], 2);
    EXPECT_EQ(ranks[1].out(), "");
    EXPECT_THAT(ranks[0].err(), HasSubstr("files of the earlier run were moved: metrics.jsonl to metrics-1.jsonl"));
  }
  std::filesystem::remove(work_ / "run/metrics.jsonl");
  std::vector<TrainProcess> ranks = start_all({"train.steps=1000000"});
  while (!has_stepped() && !ranks[0].ended()) ::usleep(5000);
  send_signal(ranks[2].pid(), SIGKILL);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].wait(), 1);
  EXPECT_THAT(ranks[0].err(), HasSubstr(" error rank 0: rank 2 (pipeline 1, data 0, tensor 0; "));
  EXPECT_THAT(ranks[0].err(), ContainsRegex("was lost (during or )?after step "));
}

/// Rank 0 runs the job server and hangs: it reports this itself, and all ranks end.
TEST_F(TrainLaunched, ARankThatHangsAndServesIsNamed) {
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> arguments = {"train", "run.toml", "--json"};
    for (const char* set :
         {"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-faulty", "optimizer.lr=1e-2",
          "optimizer.rank=0", "optimizer.where=step", "optimizer.hangs=true", "train.stall_timeout_s=3"})
      arguments.insert(arguments.end(), {"--set", set});
    ranks.emplace_back(work_.path(), "rank-" + std::to_string(rank), arguments, variables(rank, 4, port));
  }
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 1) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("in step() of plugin \"optim-faulty\"\n"));
  EXPECT_THAT(ranks[0].err(), HasSubstr(") is stuck after step 1: step 2, 0OPT_STEP: no progress for "));
  EXPECT_THAT(ranks[0].err(), HasSubstr("\n  this process is terminated after "));
  const auto failure = nlohmann::json::parse(read_file(work_ / "run/failure.json"));
  EXPECT_EQ(failure["stuck"], true);
  EXPECT_LT(failure["seconds_to_stop"], 3); // without the time in which the rank was stuck
  const auto result = nlohmann::json::parse(ranks[0].out());
  EXPECT_EQ(result["outcome"], "failed");
  EXPECT_EQ(result["rank"], 0);
  EXPECT_THAT(result["reason"].get<std::string>(), HasSubstr("in step() of plugin \"optim-faulty\""));
  for (const std::size_t other : {1, 2, 3}) EXPECT_EQ(ranks[other].out() + ranks[other].err(), "") << other;
}

TEST_F(TrainLaunched, ReportALostServer) {
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({"train.steps=1000000"}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  while (!has_stepped() && !ranks[0].ended()) ::usleep(5000);
  send_signal(ranks[0].pid(), SIGKILL);
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(ranks[rank].wait(), 1);
    EXPECT_THAT(ranks[rank].err(), HasSubstr("127.0.0.1:" + std::to_string(port))) << rank;
    EXPECT_THAT(ranks[rank].err(), HasSubstr("lost")) << rank;
  }
}

TEST_F(TrainLaunched, PrintARefusalOnceAndStartNoRank) {
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({"model.heads=3"}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("model.heads = 3"));
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(ranks[rank].err(), "") << rank;
  EXPECT_FALSE(std::filesystem::exists(work_ / "run/metrics.jsonl"));
}

TEST_F(TrainLaunched, ATomlThatCanBeReadOnceIsRefusedByRank0ForAll) {
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back(work_.path(), "rank-" + std::to_string(rank),
                       std::vector<std::string>{"train", "/dev/stdin", "--json"}, variables(rank, 2, port));
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("/dev/stdin: is standard input or a pipe, but each rank reads"));
  EXPECT_EQ(nlohmann::json::parse(ranks[0].out())["outcome"], "refused");
  EXPECT_EQ(ranks[1].out() + ranks[1].err(), "");
}

TEST_F(TrainLaunched, VariablesThatContradictEachOtherMakeOneResult) {
  for (const int number : {0, 1}) {
    std::vector<std::string> wrong = variables(number, 2, free_port());
    std::erase_if(wrong, [](const std::string& one) { return one.starts_with("MASTER_PORT="); });
    TrainProcess rank(work_.path(), "rank", {"train", "run.toml", "--json"}, wrong);
    EXPECT_EQ(rank.wait(), 2) << rank.err();
    EXPECT_THAT(rank.err(), HasSubstr("MASTER_PORT"));
    EXPECT_EQ(rank.out().empty(), number == 1) << rank.out();
  }
}

/// Each rank checks its plugins: the order of ranks is not fixed, and machines may have different plugins.
TEST_F(TrainLaunched, EachRankProbesItsPlugins) {
  TrainProcess rank = start({"plugins.path=[\"" TEST_PLUGINS "\"]", "optimizer.plugin=optim-leaves",
                             "optimizer.lr=1e-2", "launch.start_timeout_s=1"},
                            "rank-1", variables(1, 4, free_port()));
  EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(rank.err(), HasSubstr("optimizer.plugin \"optim-leaves\" cannot be used: "));
}

TEST_F(TrainLaunched, ARankWithAnotherRunIsRefused) {
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> sets = {"run.dir=folder-" + std::to_string(rank)}; // folders may differ
    if (rank == 2) sets.emplace_back("optimizer.lr=0.5");
    ranks.push_back(start(sets, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  }
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_EQ(ranks[2].err(),
            "the configuration of rank 2 differs from rank 0's:\n  optimizer.lr = 0.5; on rank 0 it is 0.01\n"
            "  start all ranks with one launch, the same TOML and --set, and equal copies of the corpora\n");
  for (const std::size_t other : {0, 1, 3}) EXPECT_EQ(ranks[other].err(), "") << other;
}

TEST_F(TrainLaunched, ARankWithAnotherCorpusIsRefused) {
  write_file(work_ / "other.txt", std::string(20'000, 'x'));
  run(work_.path(), "data prepare --input other.txt --output other --tokenizer byte", "2>&1");
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> sets;
    if (rank == 3) sets.emplace_back("data.path=other");
    ranks.push_back(start(sets, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  }
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[3].err(), HasSubstr("the configuration of rank 3 differs from rank 0's:\n"
                                        "  content of data.path[0] = 20001 tokens, checksum "));
}

TEST_F(TrainLaunched, ARankOfAnotherJobIsRefused) {
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<std::string> own = variables(rank, 4, port);
    own.push_back(rank == 1 ? "TORCHELASTIC_RUN_ID=two" : "TORCHELASTIC_RUN_ID=one");
    ranks.push_back(start({}, "rank-" + std::to_string(rank), own));
  }
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[1].err(), HasSubstr("  the launcher's job = two; on rank 0 it is one\n"));
}

TEST_F(TrainLaunched, ARankThatCannotOpenItsLogReportsAndEndsTheJob) {
  std::filesystem::create_directories(work_ / "run/rank-2.log");
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 1) << rank.err();
  EXPECT_THAT(ranks[2].err(), HasSubstr("rank-2.log: the log cannot be opened"));
}

TEST_F(TrainLaunched, AnotherNumberOfRanksThanTheLayoutsIsRefused) {
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(start({"parallel.data=1"}, "rank-" + std::to_string(rank), variables(rank, 2, port)));
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("does not fit the launcher's 2 ranks"));
}

} // namespace
} // namespace triax::test
