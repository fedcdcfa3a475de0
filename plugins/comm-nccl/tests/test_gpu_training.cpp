// SPDX-License-Identifier: Apache-2.0
// Runs of several ranks on one GPU, compared with one rank: p, t and d of 2, t and p with two communicator plugins,
// captured steps. The ranks are processes with a launcher's environment. Each is configured as the only rank of its
// machine, so that all use the first GPU; several_ranks_per_gpu permits that.
#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/installation.hpp"
#include "support/program.hpp"
#include "support/run_ranks.hpp"
#include "support/temp_folder.hpp"
#include "triax/cuda/cuda_device.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

constexpr int kSteps = 6;

class GpuTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const Refusals answer = cuda::available({}); !answer.empty()) GTEST_SKIP() << answer.front().message;
    std::string toml = read_file(test_file("base.toml"));
    replace_all(toml, "kernels-reference", "kernels-cublas");
    replace_all(toml, "\"comm-local\"", "\"comm-nccl\"\nseveral_ranks_per_gpu = true");
    replace_all(toml, "steps = 50", text("steps = {}\nstall_timeout_s = 120", kSteps));
    write_file(work_ / "run.toml", toml);
    std::string words;
    for (int i = 0; i < 200; ++i) words += text("line {} of a text to learn from\n", i * i);
    write_file(work_ / "text.txt", words);
    ASSERT_EQ(run(work_.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1").status, 0);
  }

  /// The step records of a run with these keys on `ranks` processes.
  std::vector<nlohmann::json> records(int ranks, const std::string& keys) {
    const std::string folder = text("run-{}", ++runs_);
    const Outcome run = run_ranks(work_.path(), text("train run.toml --set run.dir={} {}", folder, keys), ranks);
    if (run.status != 0) ADD_FAILURE() << ranks << " ranks with " << keys << ":\n" << run.text;
    std::vector<nlohmann::json> out;
    std::istringstream metrics(run.status == 0 ? read_file(work_ / folder / "metrics.jsonl") : "");
    for (std::string line; std::getline(metrics, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }
  std::vector<double> losses(int ranks, const std::string& keys) {
    std::vector<double> out;
    for (const nlohmann::json& record : records(ranks, keys)) out.push_back(record.at("loss"));
    return out;
  }

  TempFolder work_;
  int runs_ = 0;
};

TEST_F(GpuTraining, OfTwoRanksHasTheLossesOfOne) {
  const std::vector<double> alone = losses(1, "");
  ASSERT_EQ(alone.size(), static_cast<std::size_t>(kSteps));
  for (const char* keys : {"--set parallel.pipeline=2", "--set parallel.pipeline=2 --set comm.edge_communicators=true",
                           "--set parallel.tensor=2", "--set parallel.data=2 --set comm.register_buffers=true"}) {
    const std::vector<double> two = losses(2, keys);
    ASSERT_EQ(two.size(), alone.size()) << keys;
    for (std::size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(two[i], alone[i], 1e-4 * alone[i]) << keys << ", step " << i + 1;
  }
}

/// Tensor groups use NCCL on the GPU's streams; the pipeline's edges use comm-ucx.
TEST_F(GpuTraining, OverNcclAndUcxHasTheLossesOfOne) {
  if (!std::filesystem::exists(plugin_file("comm-ucx"))) GTEST_SKIP() << "comm-ucx was not built";
  const std::vector<double> alone = losses(1, "");
  const std::vector<nlohmann::json> four =
      records(4, "--set parallel.pipeline=2 --set parallel.tensor=2 --set comm.pipeline.plugin=comm-ucx");
  ASSERT_EQ(four.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_NEAR(four[i].at("loss").get<double>(), alone[i], 1e-4 * alone[i]) << "step " << i + 1;
    const nlohmann::json& comm = four[i].at("comm");
    EXPECT_EQ(comm.at("tensor").at("plugin"), "comm-nccl");
    EXPECT_EQ(comm.at("pipeline").at("plugin"), "comm-ucx");
    for (const char* axis : {"tensor", "pipeline"})
      for (const char* counter : {"ops", "bytes_out", "bytes_in"})
        EXPECT_GT(comm.at(axis).at(counter).get<std::uint64_t>(), 0u) << axis << ", " << counter << ", step " << i + 1;
  }
}

TEST_F(GpuTraining, OfRecordedStepsHasTheLossesOfWalkedOnes) {
  for (const auto& [ranks, keys] : {std::pair(1, std::string()), std::pair(2, std::string("--set parallel.data=2"))})
    EXPECT_EQ(losses(ranks, keys + " --set train.cuda_graph=true"), losses(ranks, keys)) << ranks;
}

TEST_F(GpuTraining, OfTwoRanksGivesTheSameBitsInEveryRun) {
  for (const char* keys : {"--set parallel.tensor=2", "--set parallel.data=2"})
    EXPECT_EQ(losses(2, keys), losses(2, keys)) << keys;
}

TEST_F(GpuTraining, WithoutPermissionTwoRanksOnOneGpuAreRefused) {
  const Outcome run =
      run_ranks(work_.path(), "train run.toml --set parallel.data=2 --set comm.several_ranks_per_gpu=false", 2);
  EXPECT_NE(run.status, 0);
  EXPECT_THAT(run.text, ::testing::HasSubstr("rank 0 and rank 1 are on one GPU"));
}

} // namespace
} // namespace triax::test
