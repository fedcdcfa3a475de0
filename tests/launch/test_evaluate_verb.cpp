// SPDX-License-Identifier: Apache-2.0
// triax evaluate with ranks as processes and as threads: the loss of training, and evaluations that are stopped or
// fail.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class EvaluateVerb : public ProcessRun {
 protected:
  /// Trains three steps, and returns the held-out loss of the last.
  double trained() const {
    TrainProcess job = start({"train.steps=3", "eval.every=3", "eval.batches=2", "data.validation=text"}, "training");
    EXPECT_EQ(job.wait(), 0) << job.err();
    std::istringstream lines(read_file(work_ / "run/metrics.jsonl"));
    Json last;
    for (std::string line; std::getline(lines, line);) last = Json::parse(line);
    return last.at("eval_loss").get<double>();
  }
  TrainProcess evaluate(const std::vector<std::string>& sets, const std::string& name = "evaluation",
                        const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> arguments = {"evaluate", "run.toml", "--json", "--data", "text"};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return {work_.path(), name, arguments, variables};
  }
  /// With as many batches as training used.
  TrainProcess evaluate_two(std::vector<std::string> sets, const std::string& name = "evaluation",
                            const std::vector<std::string>& variables = {}) const {
    sets.emplace_back("eval.batches=2");
    return evaluate(sets, name, variables);
  }
  /// With more batches than the test waits for. Returns once all ranks evaluate.
  TrainProcess evaluate_long(std::vector<std::string> sets) const {
    sets.insert(sets.end(), {"eval.batches=100000000", "log.level=info"});
    TrainProcess job = evaluate(sets);
    while (job.err().find("evaluates the weights of") == std::string::npos && !job.ended()) ::usleep(5000);
    ::usleep(200'000); // ranks agree to begin, and evaluate many batches
    return job;
  }
  std::map<std::string, fs::file_time_type> files() const {
    std::map<std::string, fs::file_time_type> out;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(work_ / "run"))
      out[entry.path().string()] = entry.last_write_time();
    return out;
  }
};

TEST_F(EvaluateVerb, TheLossIsThatOfTrainingOnAnyRanks) {
  const double trained = this->trained();
  const auto before = files();
  for (const std::vector<std::string>& sets :
       std::vector<std::vector<std::string>>{{},
                                             {"comm.plugin=comm-local"},
                                             {"parallel.pipeline=1"},
                                             {"parallel.pipeline=1", "comm.plugin=comm-local"}}) {
    TrainProcess job = evaluate_two(sets);
    EXPECT_EQ(job.wait(), 0) << job.err();
    const Json result = Json::parse(job.out());
    EXPECT_EQ(result["loss"].get<double>(), trained) << job.out();
    EXPECT_EQ(result["outcome"], "evaluated");
    EXPECT_EQ(result["step"], 3);
    EXPECT_EQ(result["samples"], 16);
    EXPECT_EQ(result["tokens"], 16 * 8);
    EXPECT_THAT(result["checkpoint"].get<std::string>(), testing::EndsWith("run/checkpoints/step-00000003"));
  }
  TrainProcess one = evaluate_two({"parallel.pipeline=1", "parallel.tensor=1"});
  EXPECT_EQ(one.wait(), 0) << one.err();
  EXPECT_NEAR(Json::parse(one.out())["loss"].get<double>(), trained, 1e-6 * trained);
  EXPECT_EQ(files(), before);
}

TEST_F(EvaluateVerb, RanksThatOthersStartEvaluate) {
  const double trained = this->trained();
  const auto before = files();
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(evaluate_two({}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
  EXPECT_EQ(Json::parse(ranks[0].out())["loss"].get<double>(), trained);
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(ranks[rank].out() + ranks[rank].err(), "");
  EXPECT_EQ(files(), before);
}

TEST_F(EvaluateVerb, ASignalEndsItWithoutALoss) {
  trained();
  for (const char* plugin : {"comm.plugin=comm-ucx", "comm.plugin=comm-local"}) {
    TrainProcess job = evaluate_long({plugin});
    const std::vector<pid_t> ranks = job.ranks();
    send_signal(job.pid(), SIGTERM);
    EXPECT_EQ(job.wait(), 128 + SIGTERM) << job.err();
    EXPECT_THAT(job.err(), HasSubstr("\nstopped by SIGTERM before the evaluation ended\n"));
    const Json result = Json::parse(job.out());
    EXPECT_EQ(result["outcome"], "stopped");
    EXPECT_EQ(result["signal"], "SIGTERM");
    EXPECT_TRUE(result["loss"].is_null());
    for (const pid_t rank : ranks) EXPECT_TRUE(ends_soon(rank));
  }
}

TEST_F(EvaluateVerb, ARankThatIsLostIsNamedAndNothingIsWritten) {
  trained();
  const auto before = files();
  TrainProcess job = evaluate_long({});
  send_signal(job.ranks().at(2), SIGKILL);
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(),
              ContainsRegex("rank 2 \\([^)]*\\) was lost before the end of the evaluation: killed by signal 9"));
  EXPECT_EQ(Json::parse(job.out())["rank"], 2);

  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(evaluate({"eval.batches=100000000"}, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  while (ranks[0].err().find("evaluates the weights of") == std::string::npos && !ranks[0].ended()) ::usleep(5000);
  send_signal(ranks[2].pid(), SIGKILL);
  for (const std::size_t rank : {0, 1, 3}) EXPECT_EQ(ranks[rank].wait(), 1);
  EXPECT_THAT(ranks[0].err(), ContainsRegex("rank 2 \\([^)]*\\) was lost before the end of the evaluation: "));
  EXPECT_EQ(Json::parse(ranks[0].out())["rank"], 2);
  EXPECT_EQ(files(), before);
}

TEST_F(EvaluateVerb, WhatCannotBeEvaluatedIsRefusedBeforeAnyRankStarts) {
  TrainProcess none = evaluate_two({});
  EXPECT_EQ(none.wait(), 2);
  EXPECT_THAT(none.err(), ContainsRegex("run.dir = \"[^\n]*/run\" has no complete checkpoint\n"
                                        "  train the run, which saves one, or name one with --checkpoint\n"));
  EXPECT_FALSE(fs::exists(work_ / "run"));
  trained();
  TrainProcess other = evaluate_two({"model.hidden=32"});
  EXPECT_EQ(other.wait(), 2);
  EXPECT_THAT(other.err(), HasSubstr(" in this run. Changed: model.hidden = 32 (was 16)"));
  EXPECT_THAT(other.err(), Not(HasSubstr("rank ")));
  const Json refused = Json::parse(other.out());
  EXPECT_EQ(refused["outcome"], "refused");
  EXPECT_EQ(refused["errors"][0]["keys"][0], "model.hidden");
}

} // namespace
} // namespace triax::test
