// SPDX-License-Identifier: Apache-2.0
// resolved.toml loads as the same run.
#include <sstream>

#include "config/workspace.hpp"

namespace triax::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// All values, without their origins.
std::vector<std::string> values(const LoadResult& loaded) {
  std::vector<std::string> out;
  for (const ResolvedValue& value : loaded.values) out.push_back(value.key + " = " + value.value);
  return out;
}

constexpr const char* kResolved = "out/resolved.toml"; // for a run whose folder is out

TEST(ToToml, LoadsToTheSameRunInTheRunsFolder) {
  Workspace space;
  space.tables["run"] = "dir = \"out\"\n";
  space.tables["comm"] = "plugin = \"comm-alpha\"\ntimeout_s = 5\nlinks = [\"a # b\", 'c\"d']\ntrace = \"t\"\n";
  space.tables["comm.tensor"] = "ratio = 0.1\n";
  space.tables["comm.data"] = "plugin = \"comm-beta\"\n";
  space.tables["parallel"] = "split = [2]\n";
  space.tables["optimizer"] = "plugin = \"optim-toy\"\nlr = 1.0000000000000002e-3\n";
  const LoadResult first = space.load({}, {{"train.steps", "7"}});
  ASSERT_THAT(texts(first), IsEmpty());
  space.write(kResolved, to_toml(first));
  const LoadResult second = space.load_file(kResolved);
  ASSERT_THAT(texts(second), IsEmpty());
  EXPECT_EQ(values(second), values(first));
  EXPECT_EQ(second.run->folder, first.run->folder);
  EXPECT_EQ(second.run->optimizer_core.lr, 1.0000000000000002e-3);
  EXPECT_EQ(second.run->comm.at("tensor").options.integer("timeout_s"), 5);
  EXPECT_EQ(second.run->comm.at("data").name, "comm-beta");
}

TEST(ToToml, MetricsFollowTheFolderOfARunThatIsDoneAnew) {
  Workspace space;
  space.write("elsewhere/resolved.toml", to_toml(space.load()));
  const LoadResult second = space.load_file("elsewhere/resolved.toml", {{"run.dir", space.path("other").string()}});
  ASSERT_THAT(texts(second), IsEmpty());
  EXPECT_EQ(second.run->log.metrics, space.path("other") / "metrics.jsonl");
  const LoadResult chosen = space.load({}, {{"log.metrics", space.path("mine.jsonl").string()}});
  EXPECT_THAT(to_toml(chosen), HasSubstr("mine.jsonl"));
}

/// Paths within the run's folder refer to the copy; all others do not change.
TEST(ToToml, ACopyOfTheFolderTrainsInTheCopy) {
  Workspace space;
  for (const char* file : {"out/mine.bin", "out/mine.idx"}) space.write(file, "");
  space.write("out/mine.json", R"({"tokenizer": "byte", "vocab": 257})");
  space.tables["run"] = "dir = \"out\"\n";
  space.tables["log"] = "metrics = \"out/numbers/steps.jsonl\"\n";
  space.tables["data"] = "paths = [\"out/mine\", \"text\"]\n";
  const LoadResult first = space.load();
  ASSERT_THAT(texts(first), IsEmpty());
  const std::string toml = to_toml(first);
  EXPECT_THAT(toml, HasSubstr("\n[run]\ndir = \".\""));
  space.write(kResolved, toml);
  std::filesystem::copy(space.path("out"), space.path("copy"), std::filesystem::copy_options::recursive);
  const LoadResult second = space.load_file("copy/resolved.toml");
  ASSERT_THAT(texts(second), IsEmpty());
  EXPECT_EQ(second.run->folder, space.path("copy"));
  EXPECT_EQ(second.run->log.metrics, space.path("copy/numbers/steps.jsonl"));
  EXPECT_THAT(second.run->data.training.paths, testing::ElementsAre(space.path("copy/mine"), space.path("text")));
}

/// [loss_scale] is written only where it is valid.
TEST(ToToml, LoadsToTheSameRunInEveryPrecision) {
  for (const char* precision : {"fp32", "bf16", "fp16", "fp64"}) {
    for (const bool constant : {false, true}) {
      Workspace space;
      space.tables["run"] = "dir = \"out\"\n";
      space.tables["train"] = text("steps = 100\nprecision = \"{}\"\n", precision);
      if (constant && precision == std::string("fp16")) space.tables["loss_scale"] = "constant = true\n";
      const LoadResult first = space.load();
      ASSERT_THAT(texts(first), IsEmpty());
      space.write(kResolved, to_toml(first));
      const LoadResult second = space.load_file(kResolved);
      ASSERT_THAT(texts(second), IsEmpty()) << precision;
      EXPECT_EQ(values(second), values(first)) << precision;
    }
  }
}

TEST(ToToml, ReportsEveryOrigin) {
  Workspace space;
  const std::string text = to_toml(space.load({}, {{"train.steps", "7"}}));
  EXPECT_THAT(text, HasSubstr("\n[train]\nsteps = 7"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" = ") == std::string::npos) continue;
    EXPECT_THAT(line, HasSubstr("  # "));
  }
}

/// Origins are written as comments.
TEST(ToToml, WritesEachOriginOnOneLineForAnyFileName) {
  Workspace space;
  space.load();
  test::write_file(space.path("a\n  b\x1b\xFF.toml"), test::read_file(space.path("run.toml")));
  const LoadResult first = space.load_file("a\n  b\x1b\xFF.toml", {{"run.dir", "here"}});
  ASSERT_THAT(texts(first), IsEmpty());
  EXPECT_THAT(to_toml(first), HasSubstr("  # a   b\\u001B\\xFF.toml:"));
  space.write("elsewhere/resolved.toml", to_toml(first));
  EXPECT_THAT(texts(space.load_file("elsewhere/resolved.toml")), IsEmpty());
}

} // namespace
} // namespace triax::config
