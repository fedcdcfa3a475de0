// SPDX-License-Identifier: Apache-2.0
// Includes, flags, origins, and the keys that are dropped when a plugin is replaced.
#include "config/workspace.hpp"

namespace triax::config {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;

TEST(Layers, EveryValueReportsWhereItCameFrom) {
  Workspace space;
  space.tables["batch"] = "\n  global =   8\n";
  const LoadResult loaded = space.load({}, {{"train.steps", "7"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(shown(loaded, "batch.global"), "8 # run.toml:3:14");
  EXPECT_EQ(shown(loaded, "batch.micro"), "1 # default");
  EXPECT_EQ(shown(loaded, "parallel.data"), "1 # derived");
  EXPECT_EQ(shown(loaded, "model.vocab"), "257 # derived");
  EXPECT_EQ(shown(loaded, "train.steps"), "7 # --set");
}

TEST(Layers, LaterIncludesWinAndTheFileItselfWinsOverAll) {
  Workspace space;
  space.write("one.toml", "[train]\nseed = 1\nclip_grad = 1.0\nstall_timeout_s = 11\n");
  space.write("parts/two.toml", "include = [\"three.toml\"]\n[train]\nclip_grad = 2.0\n");
  space.write("parts/three.toml", "[train]\nclip_grad = 3.0\nstall_timeout_s = 33\n");
  space.tables["train"] = "steps = 100\nseed = 9\n";
  const LoadResult loaded = space.load("include = [\"one.toml\", \"parts/two.toml\"]\n");
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->train.seed, 9u);
  EXPECT_EQ(shown(loaded, "train.clip_grad"), "2.0 # parts/two.toml:3:13");
  EXPECT_EQ(shown(loaded, "train.stall_timeout_s"), "33.0 # parts/three.toml:3:19");
}

TEST(Layers, LaterFlagsWin) {
  Workspace space;
  const LoadResult loaded = space.load({}, {{"train.steps", "7"}, {"train.steps", "8"}});
  EXPECT_EQ(shown(loaded, "train.steps"), "8 # --set");
}

TEST(Layers, AnIncludeCycleNamesItsChain) {
  Workspace space;
  space.write("a.toml", "include = [\"b.toml\"]\n");
  space.write("b.toml", "include = [\"a.toml\"]\n");
  space.write("run.toml", "include = [\"a.toml\"]\n");
  EXPECT_THAT(texts(space.load_file("run.toml")),
              ElementsAre("b.toml:1:12: includes form a cycle: a.toml includes b.toml includes a.toml"));
}

TEST(Layers, IncludeAFileTwiceIfThereIsNoCycle) {
  Workspace space;
  space.write("base.toml", "[train]\nseed = 3\n");
  space.write("a.toml", "include = [\"base.toml\"]\n");
  const LoadResult loaded = space.load("include = [\"a.toml\", \"base.toml\"]\n");
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->train.seed, 3u);
}

/// The number of paths to a file doubles with each level.
TEST(Layers, AFileThatIsIncludedOnManyWaysIsReadOnce) {
  Workspace space;
  space.write("0.toml", "[train]\nseed = 3\n");
  for (int level = 1; level <= 60; ++level) {
    const std::string below = "\"" + std::to_string(level - 1) + ".toml\"";
    space.write(std::to_string(level) + ".toml", "include = [" + below + ", " + below + "]\n");
  }
  const LoadResult loaded = space.load("include = [\"60.toml\"]\n");
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(shown(loaded, "train.seed"), "3 # 0.toml:2:8");
}

TEST(Layers, AFileThatIsIncludedAgainHasTheLaterPlace) {
  Workspace space;
  space.write("base.toml", "[train]\nseed = 1\nclip_grad = 1.0\n");
  space.write("a.toml", "include = [\"base.toml\"]\n[train]\nseed = 2\nclip_grad = 2.0\nstall_timeout_s = 2\n");
  space.write("b.toml", "include = [\"./base.toml\"]\n[train]\nclip_grad = 3.0\n");
  const LoadResult loaded = space.load("include = [\"a.toml\", \"b.toml\"]\n");
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(shown(loaded, "train.seed"), "1 # base.toml:2:8");
  EXPECT_EQ(shown(loaded, "train.clip_grad"), "3.0 # b.toml:3:13");
  EXPECT_EQ(shown(loaded, "train.stall_timeout_s"), "2.0 # a.toml:5:19");
}

/// A key of base is kept if base, included again, names its plugin again.
TEST(Layers, DropKeysOfAPluginThatAnInclusionReplaces) {
  Workspace space;
  space.write("base.toml", "[comm]\nplugin = \"comm-alpha\"\ntimeout_s = 5\n");
  space.write("a.toml", "include = [\"base.toml\"]\n[comm]\nplugin = \"comm-beta\"\nwindow = 8\n");
  space.tables.erase("comm");
  const LoadResult loaded = space.load("include = [\"a.toml\", \"base.toml\"]\n");
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_THAT(loaded.dropped, ElementsAre("comm.window = 8 (a.toml:4:1), a key of comm-beta"));
  EXPECT_EQ(shown(loaded, "comm.timeout_s"), "5 # base.toml:3:13");
}

/// Paths in a linked file are relative to the link.
TEST(Layers, ALinkToAFileIsAFileOfItsOwn) {
  Workspace space;
  space.write("base.toml", "[data]\npath = \"text\"\n");
  for (const char* ending : {".bin", ".idx"}) space.write(std::string("deep/text") + ending, "");
  space.write("deep/text.json", R"({"tokenizer": "byte", "vocab": 300})");
  std::filesystem::create_symlink("../base.toml", space.path("deep/link.toml"));
  space.tables.erase("data");
  EXPECT_EQ(space.load("include = [\"base.toml\", \"deep/link.toml\"]\n").run->vocab, 300);
  EXPECT_EQ(space.load("include = [\"deep/link.toml\", \"base.toml\"]\n").run->vocab, 257);
}

TEST(Layers, AnIncludeThatCannotBeReadIsTheFaultOfItsLine) {
  Workspace space;
  EXPECT_THAT(texts(space.load("include = [\"missing.toml\"]\n")),
              ElementsAre("run.toml:1:12: include \"missing.toml\" does not exist\n  correct the path"));
}

TEST(Layers, IncludeTakesAListOfFiles) {
  Workspace space;
  EXPECT_THAT(texts(space.load("include = \"none.toml\"\n")),
              ElementsAre("run.toml:1:11: include = \"none.toml\" is not a list of files\n"
                          "  write include = [\"none.toml\"]"));
  EXPECT_THAT(texts(space.load("include = 5\n")), ElementsAre("run.toml:1:11: include = 5 is not a list of files\n"
                                                              "  write include = [\"base.toml\"]"));
  EXPECT_THAT(texts(space.load("include = [\"\"]\n")),
              ElementsAre("run.toml:1:12: include has an empty name\n  name a file, or leave it out"));
}

TEST(Layers, AFileOfNearlyThatNameOrWithItsEndingIsPointedTo) {
  Workspace space;
  space.write("base.toml", "");
  const auto refused = [&space](const std::string& name) {
    return texts(space.load("include = [\"" + name + "\"]\n"));
  };
  EXPECT_THAT(refused("base"), ElementsAre(EndsWith("does not exist\n  did you mean base.toml?")));
  EXPECT_THAT(refused("bsae.toml"), ElementsAre(EndsWith("does not exist\n  did you mean base.toml?")));
  EXPECT_THAT(refused("gone.toml"), ElementsAre(EndsWith("does not exist\n  correct the path")));
  EXPECT_THAT(texts(config::load("", {})), ElementsAre("the name of the run's file is empty\n  name a TOML file"));
}

TEST(Layers, SyntaxErrorsHaveTheirOwnLineAlsoInsideAnInclude) {
  Workspace space;
  space.write("bad.toml", "[train]\nsteps = \n");
  EXPECT_THAT(
      texts(space.load("include = [\"bad.toml\"]\n")),
      ElementsAre("bad.toml:2:8: not valid TOML: steps has no value\n  write steps = VALUE, or remove the line"));
}

TEST(Layers, ASwappedPluginDropsTheKeysOfEarlierLayers) {
  Workspace space;
  space.write("base.toml", "[comm]\nplugin = \"comm-alpha\"\ntimeout_s = 5\nwait = \"yield\"\n");
  space.tables["comm"] = "plugin = \"comm-beta\"\nwindow = 8\n";
  const LoadResult loaded = space.load("include = [\"base.toml\"]\n");
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_THAT(loaded.dropped, ElementsAre("comm.timeout_s = 5 (base.toml:3:1), a key of comm-alpha",
                                          "comm.wait = \"yield\" (base.toml:4:1), a key of comm-alpha"));
  EXPECT_EQ(shown(loaded, "comm.timeout_s"), "30 # default");
  EXPECT_EQ(shown(loaded, "comm.window"), "8 # run.toml:6:10");
}

TEST(Layers, NamingTheSamePluginAgainDropsNothing) {
  Workspace space;
  space.write("base.toml", "[comm]\nplugin = \"comm-alpha\"\ntimeout_s = 5\n");
  const LoadResult loaded = space.load("include = [\"base.toml\"]\n");
  EXPECT_THAT(loaded.dropped, IsEmpty());
  EXPECT_EQ(shown(loaded, "comm.timeout_s"), "5 # base.toml:3:13");
}

TEST(Layers, AFlagDropsKeysOfTheFileButNoneOfTheCore) {
  Workspace space;
  space.tables["comm"] = "plugin = \"comm-alpha\"\ntimeout_s = 5\n";
  space.tables["model"] = "plugin = \"model-toy\"\nlayers = 2\nvocab = 100\n";
  const LoadResult loaded = space.load({}, {{"comm.plugin", "comm-beta"}, {"comm.window", "2"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_THAT(loaded.dropped, ElementsAre("comm.timeout_s = 5 (run.toml:5:1), a key of comm-alpha"));
  EXPECT_EQ(loaded.run->comm.at("data").options.integer("window"), 2);
  EXPECT_EQ(loaded.run->vocab, 100);
}

TEST(Layers, TheOrderOfFlagsDoesNotDropKeys) {
  Workspace space;
  space.tables["comm"] = "plugin = \"comm-alpha\"\n";
  const LoadResult loaded = space.load({}, {{"comm.window", "2"}, {"comm.plugin", "comm-beta"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_THAT(loaded.dropped, IsEmpty());
  EXPECT_EQ(loaded.run->comm.at("data").options.integer("window"), 2);
}

TEST(Layers, FlagsOfAnotherNameAreALaterLayer) {
  Workspace space;
  space.tables["comm"] = "plugin = \"comm-alpha\"\n";
  const LoadResult loaded = space.load({}, {{"comm.ratio", "0.25"}, {"comm.plugin", "comm-beta", "--b"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_THAT(loaded.dropped, ElementsAre("comm.ratio = 0.25 (--set), a key of comm-alpha"));
}

TEST(Layers, AKeyOfAnotherPluginThanTheLastFlagsIsRefused) {
  Workspace space;
  space.tables["comm"] = "plugin = \"comm-alpha\"\n";
  const LoadResult loaded = space.load({}, {{"comm.ratio", "0.25"}, {"comm.plugin", "comm-beta"}});
  EXPECT_THAT(texts(loaded), ElementsAre("--set: [comm] comm-beta has no key \"ratio\"\n  keys of comm-beta: window, "
                                         "timeout_s (triax plugins describe comm-beta)"));
}

TEST(Layers, AnAxisThatInheritedLosesItsKeysWithItsPlugin) {
  Workspace space;
  space.tables["comm.tensor"] = "timeout_s = 5\n";
  const LoadResult loaded = space.load({}, {{"comm.plugin", "comm-beta"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_THAT(loaded.dropped, ElementsAre("comm.tensor.timeout_s = 5 (run.toml:6:1), a key of comm-alpha"));
  EXPECT_EQ(loaded.run->comm.at("tensor").options.integer("timeout_s"), 30);
}

TEST(Layers, AxesShareThePluginThatAFlagNames) {
  Workspace space;
  const LoadResult loaded = space.load({}, {{"comm.plugin", "comm-beta"}});
  ASSERT_THAT(texts(loaded), IsEmpty());
  for (const char* axis : {"tensor", "data", "pipeline"}) EXPECT_EQ(loaded.run->comm.at(axis).table, "comm");
}

} // namespace
} // namespace triax::config
