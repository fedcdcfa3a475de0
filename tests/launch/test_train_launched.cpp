// triax train as one of the ranks that others have started, in the torchrun manner: what is told, by whom, and how
// often.
#include <gmock/gmock.h>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using ::testing::HasSubstr;

using TrainLaunched = ProcessRun;

TEST_F(TrainLaunched, ARankThatNeverComesIsNamed) {
  Running job = start({"launch.start_timeout_s=1"}, "rank-0", variables(0, 4, free_port()));
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr("1, 2, 3"));
  EXPECT_THAT(job.err(), HasSubstr("launch.start_timeout_s"));
}

TEST_F(TrainLaunched, RanksThatOthersStartTrainAndTellOfALoss) {
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

TEST_F(TrainLaunched, WhoseServerIsLostSaySo) {
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

TEST_F(TrainLaunched, WhatIsRefusedIsPrintedOnceAndNoRankStarts) {
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({"model.heads=3"}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("model.heads = 3 (--set)"));
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(ranks[rank].err(), "") << rank;
  EXPECT_FALSE(std::filesystem::exists(work_ / "run/metrics.jsonl"));
}

TEST_F(TrainLaunched, ARankWithAnotherRunIsRefused) {
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

TEST_F(TrainLaunched, ARankThatCannotOpenItsLogTellsAndEndsTheJob) {
  std::filesystem::create_directories(work_ / "run/rank-2.log");
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(start({}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 1) << rank.err();
  EXPECT_THAT(ranks[2].err(), HasSubstr("rank-2.log: the log cannot be opened"));
}

TEST_F(TrainLaunched, AnotherNumberOfRanksThanTheLayoutsIsRefused) {
  const int port = free_port();
  std::vector<Running> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(start({"parallel.data=1"}, "rank-" + std::to_string(rank), variables(rank, 2, port)));
  for (Running& rank : ranks) EXPECT_EQ(rank.wait(), 2) << rank.err();
  EXPECT_THAT(ranks[0].err(), HasSubstr("does not fit the launcher's 2 ranks"));
}

} // namespace
} // namespace triax::test
