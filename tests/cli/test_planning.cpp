// SPDX-License-Identifier: Apache-2.0
// triax check --json of a run on a machine that cannot train it: without the data, GPUs and GPU plugins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/plugin_tables.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

TEST_F(Planning, AModelOfAPaperIsSizedWithoutDataGpusAndTheirPlugins) {
  const Outcome outcome = triax("check run.toml --no-device --json", "2>/dev/null");
  ASSERT_EQ(outcome.status, 0) << triax("check run.toml --no-device").text;
  const auto object = nlohmann::json::parse(outcome.text);
  // 12 l h^2 (1 + 13/(12h)) + h (V + s), and the final norm's 2h: SC'21, equation 2
  const std::int64_t l = 96, h = 12288, vocab = 51200, s = 2048;
  EXPECT_EQ(object["parameters"], 12 * l * h * h + 13 * l * h + h * (vocab + s) + 2 * h);
  EXPECT_EQ(object["placement"]["ranks"], 1536);
  EXPECT_TRUE(object["placement"]["device"].is_null());
  EXPECT_EQ(object["ranks"].size(), 1536u);
  EXPECT_GT(object["ranks"][0]["memory_bytes"]["weights"], 0);
  std::uint64_t bytes = 0;
  for (const auto& [what, part] : object["ranks"][0]["memory_bytes"].items()) bytes += part.get<std::uint64_t>();
  EXPECT_EQ(object["memory"]["bytes"], bytes);
  EXPECT_GT(object["ranks"][0]["host_memory_bytes"]["checkpoint staging"], 0);
  ASSERT_EQ(object["not_checked"].size(), 3u);
  EXPECT_THAT(std::string(object["not_checked"][0]),
              AllOf(HasSubstr("comm.plugin \"comm-nccl\" cannot be loaded here"), HasSubstr("weakest guarantees")));
  EXPECT_THAT(std::string(object["not_checked"][1]),
              AllOf(HasSubstr("kernels.plugin \"kernels-fused\" cannot be loaded here"), HasSubstr("scratch memory")));
  EXPECT_EQ(object["not_checked"][2], "data: data.path is not given");
}

TEST(EnginePlugins, AreKnownByNameWhereTheyAreNotInstalled) {
  config::Diagnostics diagnostics;
  config::PluginFinder finder({}, diagnostics);
  const config::CoreTable& comm = *config::find_core_table("comm");
  EXPECT_EQ(finder.why_absent(comm, "comm-nccl"), "\"comm-nccl\" is not installed here");
  EXPECT_EQ(finder.why_absent(comm, "comm-mine"), "") << "is refused: it may be a mistake";
  EXPECT_EQ(finder.why_absent(comm, "kernels-fused"), "") << "is not a communicator";
  EXPECT_TRUE(diagnostics.empty());
}

} // namespace
} // namespace triax::test
