// SPDX-License-Identifier: Apache-2.0
// Questions about a run on a machine that cannot train it: without the data, GPUs, GPU plugins or memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/plugin_tables.hpp"
#include "golden/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// examples/gpt3-175b.toml without the libraries of GPU plugins, as in a build without CUDA.
class Planning : public testing::Test {
 protected:
  Planning() {
    for (const char* plugin : {"comm-nccl.so", "kernels-fused.so"}) write_file(work_ / plugin, "not a library");
    write_file(work_ / "run.toml", "include = [\"" EXAMPLES "/gpt3-175b.toml\"]\n[plugins]\npath = [\".\"]\n");
  }
  Outcome triax(const std::string& arguments, const std::string& streams = "2>&1") const {
    return run(work_.path(), arguments, streams);
  }
  TempFolder work_;
};

// Each value is in its range, and the product of some has more than 63 bits.
TEST_F(Planning, SizesWhoseProductIsHugeAreSizedOrRefused) {
  const Outcome told = triax("check run.toml --no-device --set model.vocab=2147483647 --set model.sequence=1000000000");
  EXPECT_THAT(told.text, Not(HasSubstr("runtime error")));
  EXPECT_THAT(told.text, Not(HasSubstr("defect")));
}

TEST_F(Planning, AModelOfAPaperIsSizedWithoutDataGpusAndTheirPlugins) {
  const Outcome told = triax("check run.toml --no-device --json", "2>/dev/null");
  ASSERT_EQ(told.status, 0) << triax("check run.toml --no-device").text;
  const auto object = nlohmann::json::parse(told.text);
  // 12 l h^2 (1 + 13/(12h)) + h (V + s), and the final norm's 2h: SC'21, equation 2
  const std::int64_t l = 96, h = 12288, vocab = 51200, s = 2048;
  EXPECT_EQ(object["parameters"], 12 * l * h * h + 13 * l * h + h * (vocab + s) + 2 * h);
  EXPECT_EQ(object["placement"]["ranks"], 1536);
  EXPECT_TRUE(object["placement"]["device"].is_null());
  EXPECT_EQ(object["ranks"].size(), 1536u);
  EXPECT_GT(object["ranks"][0]["memory_bytes"]["weights"], 0);
  ASSERT_EQ(object["not_checked"].size(), 3u);
  EXPECT_THAT(std::string(object["not_checked"][0]),
              AllOf(HasSubstr("comm.plugin \"comm-nccl\" cannot be loaded here"), HasSubstr("weakest guarantees")));
  EXPECT_THAT(std::string(object["not_checked"][1]),
              AllOf(HasSubstr("kernels.plugin \"kernels-fused\" cannot be loaded here"), HasSubstr("scratch memory")));
  EXPECT_EQ(object["not_checked"][2], "data: data.path is not given");
}

TEST_F(Planning, TheScheduleOfARunNeedsItsSchedulerAlone) {
  write_file(work_ / "model-gpt.so", "not a library");
  write_file(work_ / "optim-adamw.so", "not a library");
  const Outcome told =
      triax("simulate run.toml --forward-ms 10 --input-ms 10 --weight-ms 10 --link-ms 1 --json", "2>/dev/null");
  ASSERT_EQ(told.status, 0) << triax("simulate run.toml --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0").text;
  EXPECT_EQ(nlohmann::json::parse(told.text)["peak_in_flight"].size(), 12u);
  EXPECT_EQ(triax("schedule run.toml --format csv").status, 0);
  write_file(work_ / "sched-1f1b.so", "not a library");
  const Outcome refused = triax("simulate run.toml --forward-ms 10 --input-ms 10 --weight-ms 10 --link-ms 1");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("schedule.plugin \"sched-1f1b\" cannot be used"));
}

TEST_F(Planning, WhatARunNeedsIsStillWantedWhereItIsToBeTrained) {
  const Outcome refused = triax("check run.toml", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text,
              AllOf(HasSubstr("comm.plugin \"comm-nccl\" cannot be used"),
                    HasSubstr("kernels.plugin \"kernels-fused\" cannot be used"), HasSubstr("[data] lacks path")));
}

/// A misspelled name is an error, and not a plugin of another machine.
TEST_F(Planning, AMisspeltPluginIsRefused) {
  const Outcome refused =
      triax("check run.toml --no-device --set comm.plugin=comm-ncll --set kernels.plugin=comm-nccl", "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, AllOf(HasSubstr("comm.plugin \"comm-ncll\" was not found"),
                                  HasSubstr("kernels.plugin \"comm-nccl\" cannot be used")));
}

TEST_F(Planning, DataThatIsNotHereIsLeftOutWhereTheVocabularyIsGiven) {
  const std::string verb = "check run.toml --no-device --set parallel.data=1 --set data.path=elsewhere";
  const Outcome told = triax(verb);
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_THAT(told.text, HasSubstr("elsewhere.bin and .idx do not exist\n"));
  EXPECT_THAT(told.text, Not(HasSubstr("\ndata\n")));
  write_file(work_ / "elsewhere.idx", "");
  EXPECT_THAT(triax(verb).text, HasSubstr("elsewhere.bin does not exist"));
}

TEST(EnginePlugins, AreKnownByNameWhereTheyAreNotInstalled) {
  config::Diagnostics refusals;
  config::PluginFinder finder({}, refusals);
  const config::CoreTable& comm = *config::find_core_table("comm");
  EXPECT_EQ(finder.why_absent(comm, "comm-nccl"), "\"comm-nccl\" is not installed here");
  EXPECT_EQ(finder.why_absent(comm, "comm-mine"), "") << "is refused: it may be a mistake";
  EXPECT_EQ(finder.why_absent(comm, "kernels-fused"), "") << "is not a communicator";
  EXPECT_TRUE(refusals.empty());
}

} // namespace
} // namespace triax::test
