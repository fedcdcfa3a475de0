// SPDX-License-Identifier: Apache-2.0
// triax generate with ranks as processes: the text of one rank, failures and signals.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "launch/process_run.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const std::vector<std::string> kProcesses = {"comm.plugin=comm-ucx", "parallel.tensor=2", "parallel.pipeline=2"};

class GenerateVerb : public ProcessRun {
 protected:
  void train(int sequence = 8) const {
    TrainProcess job = start({"train.steps=1", "model.sequence=" + std::to_string(sequence)}, "training");
    ASSERT_EQ(job.wait(), 0) << job.err();
  }
  TrainProcess generate(const std::vector<std::string>& flags, const std::vector<std::string>& sets,
                        const std::string& name = "text", const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> arguments = {"generate", "run.toml"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return {work_.path(), name, arguments, variables};
  }
  /// Of all its texts, and of what it says of its prompt.
  static Json content_of(TrainProcess& job) {
    EXPECT_EQ(job.wait(), 0) << job.err();
    Json out = Json::parse(job.out());
    out.erase("prompt_tokens_per_s");
    out.erase("tokens_per_s");
    return out;
  }
  /// A text that ends in minutes, once a part of it is there.
  TrainProcess start_long_text(const std::vector<std::string>& variables = {}) const {
    TrainProcess job = generate({"--prompt", "l", "--max-tokens", "0", "--temperature", "2", "--samples", "200"},
                                kProcesses, "text", variables);
    while (job.out().size() <= std::string("=== sample 1 ===\n").size() && !job.ended()) ::usleep(5000);
    return job;
  }
};

TEST_F(GenerateVerb, ProcessesGenerateTheTextOfOneRank) {
  train();
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--prompt", "li", "--json"},
           {"--prompt", "-l\n", "--stop", "-", "--json"},
           {"--prompt", "l", "--temperature", "1.3", "--seed", "5", "--samples", "3", "--top-k", "200", "--json"}}) {
    TrainProcess one = generate(flags, {"kernels.plugin=kernels-reference"}, "one");
    TrainProcess four = generate(flags, kProcesses);
    EXPECT_EQ(content_of(four), content_of(one)) << four.err();
  }
  TrainProcess one = generate({"--prompt", ""}, {}, "one"), four = generate({"--prompt", ""}, kProcesses);
  EXPECT_EQ(four.wait(), 0) << four.err();
  EXPECT_EQ(one.wait(), 0) << one.err();
  EXPECT_EQ(four.out(), one.out());
  EXPECT_THAT(four.err(), ContainsRegex("4 ranks as processes.*\n1 prompt token"));
}

TEST_F(GenerateVerb, RanksThatOthersStartGenerate) {
  train();
  TrainProcess one = generate({"--prompt", "li", "--json"}, {}, "one");
  const Json text = content_of(one);
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(
        generate({"--prompt", "li", "--json"}, kProcesses, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (std::size_t rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(ranks[rank].wait(), 0) << ranks[rank].err();
    EXPECT_EQ(ranks[rank].out() + ranks[rank].err(), "");
  }
  EXPECT_EQ(content_of(ranks[0]), text);
}

TEST_F(GenerateVerb, ProcessesChooseTheEndingsOfOneRank) {
  train();
  write_file(work_ / "choices.jsonl", R"({"context": "li", "endings": ["ne", "neon", "x"], "label": 0}
{"context": "text", "endings": [" t", " "], "label": 1}
)");
  const auto evaluate = [&](const std::vector<std::string>& sets, const std::string& name,
                            const std::vector<std::string>& variables = {}) {
    std::vector<std::string> arguments = {"evaluate", "run.toml", "--choices", "choices.jsonl", "--json"};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return TrainProcess(work_.path(), name, arguments, variables);
  };
  TrainProcess one = evaluate({}, "one"), four = evaluate(kProcesses, "four");
  EXPECT_EQ(one.wait(), 0) << one.err();
  EXPECT_EQ(four.wait(), 0) << four.err();
  const Json alone = Json::parse(one.out()), together = Json::parse(four.out());
  EXPECT_EQ(together["accuracy"], alone["accuracy"]);
  for (std::size_t example = 0; example < 2; ++example) {
    EXPECT_EQ(together["choices"][example]["choice"], alone["choices"][example]["choice"]);
    EXPECT_NEAR(together["choices"][example]["log_likelihoods"][1].get<double>(),
                alone["choices"][example]["log_likelihoods"][1].get<double>(), 1e-4);
  }
  const int port = free_port();
  std::vector<TrainProcess> ranks;
  for (int rank = 0; rank < 4; ++rank)
    ranks.push_back(evaluate(kProcesses, "rank-" + std::to_string(rank), variables(rank, 4, port)));
  for (TrainProcess& rank : ranks) EXPECT_EQ(rank.wait(), 0) << rank.err();
  EXPECT_EQ(Json::parse(ranks[0].out()), together);
}

TEST_F(GenerateVerb, RanksThatOthersStartMustHaveTheSameFlags) {
  train();
  const int port = free_port();
  const std::vector<std::string> sets = {"comm.plugin=comm-ucx", "parallel.tensor=2"};
  TrainProcess first = generate({"--prompt", "li"}, sets, "rank-0", variables(0, 2, port));
  TrainProcess second = generate({"--prompt", "li", "--max-tokens", "3"}, sets, "rank-1", variables(1, 2, port));
  EXPECT_EQ(first.wait(), 2);
  EXPECT_EQ(second.wait(), 2);
  EXPECT_THAT(first.err() + second.err(), HasSubstr("--max-tokens"));
}

TEST_F(GenerateVerb, ASignalEndsAllRanksAfterAToken) {
  train(300);
  TrainProcess job = start_long_text();
  const std::vector<pid_t> ranks = job.ranks();
  EXPECT_EQ(ranks.size(), 4U);
  send_signal(job.pid(), SIGINT);
  EXPECT_EQ(job.wait(), 128 + SIGINT) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("stopped by SIGINT\n"));
  EXPECT_THAT(job.out(), HasSubstr("=== sample 200 ===\n")); // texts that were begun are printed
  for (const pid_t rank : ranks) EXPECT_TRUE(ends_soon(rank));
}

TEST_F(GenerateVerb, ARankThatIsLostIsNamed) {
  train(300);
  TrainProcess job = start_long_text();
  send_signal(job.ranks().at(2), SIGKILL);
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), ContainsRegex("rank 2 \\([^)]*\\) was lost before the end of the text: killed by signal 9"));
}

TEST_F(GenerateVerb, WhatProcessesCannotReadIsRefused) {
  train();
  write_file(work_ / "prompt.txt", std::string(100'001, 'x'));
  TrainProcess longest = generate({"--file", "prompt.txt"}, {"comm.plugin=comm-ucx", "parallel.tensor=2"});
  EXPECT_EQ(longest.wait(), 2);
  write_file(work_ / "nul.txt", std::string("a\0b", 3));
  TrainProcess nul = generate({"--file", "nul.txt"}, {"comm.plugin=comm-ucx", "parallel.tensor=2"}, "nul");
  EXPECT_EQ(nul.wait(), 2);
  EXPECT_THAT(nul.err(), HasSubstr("the prompt has a NUL byte, but rank processes get it as an argument"));
  const int port = free_port();
  TrainProcess none = generate({}, {"comm.plugin=comm-ucx", "parallel.tensor=2"}, "none", variables(0, 2, port));
  TrainProcess other = generate({}, {"comm.plugin=comm-ucx", "parallel.tensor=2"}, "other", variables(1, 2, port));
  EXPECT_EQ(none.wait(), 2);
  EXPECT_EQ(other.wait(), 2);
  EXPECT_THAT(none.err(), HasSubstr("torchrun has started 2 processes, which cannot all read standard input"));
  EXPECT_EQ(other.err(), "");
}

TEST_F(GenerateVerb, RanksThatOthersStartDoNotImport) {
  std::filesystem::create_directory(work_ / "model");
  write_file(work_ / "model/config.json", "{}");
  const int port = free_port();
  const auto start = [&](int rank) {
    return TrainProcess(work_.path(), "rank-" + std::to_string(rank), {"generate", "model", "--prompt", "a"},
                        variables(rank, 2, port));
  };
  TrainProcess first = start(0), second = start(1);
  EXPECT_EQ(first.wait(), 2);
  EXPECT_EQ(second.wait(), 2);
  EXPECT_THAT(first.err(),
              HasSubstr("model: is a folder of transformers, but each of the 2 processes of torchrun would "
                        "import it\n  write a checkpoint with triax import hf"));
}

} // namespace
} // namespace triax::test
