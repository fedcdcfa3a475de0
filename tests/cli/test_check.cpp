// SPDX-License-Identifier: Apache-2.0
// triax check --json, which the transcripts of this folder do not parse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

/// A folder with a valid run and its data.
class Check : public testing::Test {
 protected:
  Check() {
    write_file(work_ / "run.toml", read_file(TRIAX_SOURCE_DIR "/tests/cli/base.toml"));
    write_file(work_ / "text.txt", std::string(1000, 'x'));
    run(work_.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
  }
  Outcome check(const std::string& arguments, const std::string& streams) const {
    return run(work_.path(), "check run.toml --set data.path=text " + arguments, streams);
  }
  TempFolder work_;
};

TEST_F(Check, JsonHasThePlacementOfEveryRank) {
  const std::string four = "--set parallel.data=2 --set parallel.tensor=2";
  const auto object = nlohmann::json::parse(check(four + " --json", "2>/dev/null").text);
  EXPECT_EQ(object["placement"]["ranks"], 4);
  EXPECT_EQ(object["placement"]["as"], "threads");
  EXPECT_EQ(object["placement"]["device"], "host");
  EXPECT_GE(object["placement"]["threads_per_rank"], 1);
  EXPECT_GE(object["placement"]["cores"], 1);
  ASSERT_EQ(object["ranks"].size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    const auto& of = object["ranks"][static_cast<std::size_t>(rank)];
    EXPECT_EQ(of["rank"], rank);
    EXPECT_EQ(of["tensor"], rank % 2);
    EXPECT_EQ(of["data"], rank / 2);
    EXPECT_GT(of["memory_bytes"]["weights"], 4 * 34720 / 2);
  }
}

const char* const kManyRanks =
    "--no-device --set model.layers=24 --set parallel.pipeline=24 --set batch.global=48 --set batch.micro=1 ";

TEST_F(Check, JsonHasTheSummaryOfEveryRun) {
  const auto object =
      nlohmann::json::parse(check(std::string(kManyRanks) + "--memory 1GiB --json", "2>/dev/null").text);
  EXPECT_EQ(object["memory"]["largest_rank"], 23);
  EXPECT_EQ(object["memory"]["limit_bytes"], 1 << 30);
  EXPECT_TRUE(object["memory"]["fits"]);
  ASSERT_EQ(object["ranks"].size(), 24u);
  for (const auto& rank : object["ranks"]) {
    std::size_t activations = 0;
    for (const auto& part : rank["activations"])
      activations += part["layers"].get<std::size_t>() * part["microbatches"].get<std::size_t>() *
                     part["bytes"].get<std::size_t>();
    EXPECT_EQ(activations, rank["memory_bytes"]["activations"]);
  }
  ASSERT_EQ(object["balance"]["stages"].size(), 24u);
  EXPECT_GT(object["balance"]["stages"][23]["forward_flops"], object["balance"]["stages"][1]["forward_flops"]);
  EXPECT_GT(object["balance"]["longer_than_even"], 0);
  EXPECT_GT(object["balance"]["mean_bubble"], object["balance"]["mean_bubble_if_even"]);
  EXPECT_GT(object["balance"]["mean_bubble_if_even"], 0);
  EXPECT_TRUE(nlohmann::json::parse(check("--json", "2>/dev/null").text)["memory"]["fits"].is_null());
}

TEST_F(Check, JsonHasThreadsOnlyWhereTheyCompute) {
  const std::string on_gpu =
      "--no-device --set kernels.plugin=kernels-elsewhere --set plugins.path=[\"'" TRIAX_BINARY_DIR
      "/tests/train/plugins'\"]";
  const auto object = nlohmann::json::parse(check(on_gpu + " --json", "2>/dev/null").text);
  EXPECT_EQ(object["placement"]["device"], "cuda");
  EXPECT_FALSE(object["placement"].contains("threads_per_rank"));
  const std::string many = "--set kernels.plugin=kernels-cpu --set kernels.threads=65";
  EXPECT_EQ(nlohmann::json::parse(check(many + " --json", "2>/dev/null").text)["placement"]["threads_per_rank"], 65);
}

TEST_F(Check, JsonHasTheRefusalOfAPluginThatCrashes) {
  const std::string crashing =
      "--set schedule.plugin=sched-crashing --set schedule.where=create --set plugins.path=[\"'" TRIAX_BINARY_DIR
      "/tests/train/plugins'\"]";
  const std::string refusal =
      "schedule.plugin \"sched-crashing\": its constructor crashed with SIGSEGV (Segmentation fault), "
      "file " TRIAX_BINARY_DIR "/tests/train/plugins/sched-crashing.so";
  const auto object = nlohmann::json::parse(check(crashing + " --json", "2>/dev/null").text);
  EXPECT_FALSE(object["accepted"]);
  EXPECT_EQ(object["errors"][0]["code"], "plugin-failed");
  EXPECT_EQ(object["errors"][0]["keys"], nlohmann::json({"schedule.plugin"}));
  EXPECT_EQ(object["errors"][0]["message"], refusal);
  EXPECT_THAT(std::string(object["errors"][0]["hint"]), testing::StartsWith("this is a defect of the plugin: "));
}

TEST_F(Check, JsonHasTheNoteOfAPluginThatShadowsTheEnginesOwn) {
  std::filesystem::create_directory(work_ / "mine");
  const std::filesystem::path own = TRIAX_BINARY_DIR "/lib/triax/plugins/sched-gpipe.so", mine = work_ / "mine";
  std::filesystem::copy_file(own, mine / "sched-gpipe.so");
  const std::string set = "--set schedule.plugin=sched-gpipe --set plugins.path=['\"mine\"']";
  const std::string note =
      "schedule.plugin \"sched-gpipe\" is " + (mine / "sched-gpipe.so").string() + ", which shadows " + own.string();
  EXPECT_EQ(nlohmann::json::parse(check(set + " --json", "2>/dev/null").text)["notes"][0], note);
}

TEST_F(Check, JsonHasTheNoteOfARunThatEndsInItsWarmUp) {
  const std::string note =
      "lr.warmup_steps = 51 is more than train.steps = 50: the run ends during the warm-up, below optimizer.lr = 0.003";
  const auto object = nlohmann::json::parse(check("--json --set lr.warmup_steps=51", "2>/dev/null").text);
  EXPECT_EQ(object["notes"][0], note);
}

TEST_F(Check, JsonIsOneObjectAlsoOfARefusedRun) {
  const auto accepted = nlohmann::json::parse(check("--json", "2>/dev/null").text);
  EXPECT_TRUE(accepted["accepted"]);
  EXPECT_EQ(accepted["values"]["model.layers"]["value"], 2);
  EXPECT_EQ(accepted["values"]["lr.decay"]["value"], "constant");
  EXPECT_EQ(accepted["ranks"][0]["layers"].size(), 4u);
  EXPECT_GT(accepted["ranks"][0]["memory_bytes"]["weights"], 4 * 34720);
  EXPECT_EQ(accepted["parameters"], 34720);

  const Outcome refused = check("--json --set train.steps=0", "2>/dev/null");
  EXPECT_EQ(refused.status, 2);
  const auto object = nlohmann::json::parse(refused.text);
  EXPECT_FALSE(object["accepted"]);
  EXPECT_EQ(object["errors"][0]["message"], "train.steps must be at least 1, got 0");
  EXPECT_EQ(object["errors"][0]["file"], "--set");
}

} // namespace
} // namespace triax::test
