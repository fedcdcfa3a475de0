// SPDX-License-Identifier: Apache-2.0
// Plugins named in tables, their keys, and the axes of [comm].
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <set>

#include "config/core_keys.hpp"
#include "config/workspace.hpp"
#include "plugin/option_text.hpp"
#include "plugin/plugin_descriptor.hpp"

namespace triax::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(PluginTables, AnUnknownKeyNamesItsNearestAndThePluginsKeys) {
  Workspace space;
  space.tables["comm"] = "plugin = \"comm-alpha\"\ntimout_s = 5\n";
  EXPECT_THAT(
      texts(space.load()),
      ElementsAre(
          "run.toml:5:1: [comm] comm-alpha has no key \"timout_s\"; did you mean \"timeout_s\"?\n"
          "  keys of comm-alpha: timeout_s, wait, ratio, fast, trace, links (triax plugins describe comm-alpha)"));
}

/// While it exists, this process can open one more file, but not two.
class OneFile {
 public:
  OneFile() {
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{static_cast<rlim_t>(next) + 1, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~OneFile() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;

 private:
  rlimit before_{};
};

TEST(PluginTables, APluginThatCannotBeProbedIsRefusedAndNotLoaded) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer opens pipes to look at memory";
#endif
  Workspace space;
  space.write("own/empty", "");
  std::filesystem::copy(SAMPLE_PLUGINS "/sched-toy.so", space.path("own/sched-toy.so")); // not loaded before
  space.tables["plugins"] = "path = [\"own\", \"" SAMPLE_PLUGINS "\"]\n";
  const auto refused = [&space] {
    const OneFile limit;
    return texts(space.load());
  }();
  EXPECT_THAT(refused, testing::Contains(AllOf(HasSubstr("schedule.plugin \"sched-toy\" cannot be used: "),
                                               HasSubstr("Too many open files"))));
}

TEST(PluginTables, AKeyOfTheCoreInAnotherTableIsPointedTo) {
  Workspace space;
  space.tables["train"] = "steps = 100\nwarmup_steps = 5\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("did you mean lr.warmup_steps?")));
}

TEST(PluginTables, UnknownTablesAreRefusedOnceWithAllTheyHold) {
  Workspace space;
  space.tables["trian"] = "steps = 3\nseed = 3\n";
  space.tables["trian.deep"] = "x = 3\n";
  space.tables["comm.tensr"] = "timeout_s = 3\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("unknown table [comm.tensr]; did you mean [comm.tensor]?"),
                                               HasSubstr("unknown table [trian]; did you mean [train]?")));
}

TEST(PluginTables, RefusesKeysAboveTheFirstTable) {
  Workspace space;
  space.tables.erase("train");
  EXPECT_THAT(texts(space.load("train = 5\n")),
              ElementsAre("run.toml:1:1: train is a table, not a key\n  write [train] and its keys",
                          "run.toml: train.steps is missing (optimizer steps)\n  add it below [train]"));
}

TEST(PluginTables, ATableThatIsGivenAValueIsPointedToItsPluginOrItsKeys) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"comm.tensor", "comm-beta"}, {"comm", "comm-beta"}, {"lr", "1e-3"}})),
              ElementsAre("--set: comm.tensor is a table, not a key\n  write --set comm.tensor.plugin=comm-beta",
                          "--set: comm is a table, not a key\n  write --set comm.plugin=comm-beta",
                          "--set: lr is a table, not a key\n"
                          "  write --set lr.KEY=VALUE; keys of [lr]: decay, warmup_steps, min"));
  space.tables["comm"] += "data = \"comm-beta\"\ntensor = 5\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre("run.toml:5:1: comm.data is a table, not a key\n"
                          "  write plugin = \"comm-beta\" below [comm.data]",
                          "run.toml:6:1: comm.tensor is a table, not a key\n  write [comm.tensor] and its keys"));
}

TEST(PluginTables, RequiresAPluginInEachTable) {
  Workspace space;
  space.tables["comm"] = "";
  space.tables.erase("schedule");
  const std::vector<std::string> all = texts(space.load());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0], HasSubstr("run.toml:3:2: comm.plugin is missing\n"
                                "  installed communicators: comm-alpha, comm-beta"));
  EXPECT_THAT(all[1], HasSubstr("run.toml: schedule.plugin is missing"));
}

TEST(PluginTables, APluginOfAnotherKindIsRefused) {
  Workspace space;
  space.tables["schedule"] = "plugin = \"model-toy\"\n";
  const std::vector<std::string> all = texts(space.load());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0], HasSubstr("schedule.plugin \"model-toy\" is a model, not a scheduler\n  installed schedulers: "));
}

TEST(PluginTables, APluginThatIsNotThereIsLookedForInTheFoldersOfTheFile) {
  Workspace space;
  space.tables["schedule"] = "plugin = \"sched-tyo\"\n";
  const std::vector<std::string> all = texts(space.load());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0],
              HasSubstr("run.toml:18:10: schedule.plugin \"sched-tyo\" was not found; did you mean \"sched-toy\"?\n"
                        "  looked in: " SAMPLE_PLUGINS " (plugins.path, run.toml:16), "));
}

TEST(PluginTables, ANameWithoutItsKindIsPointedToTheWholeOne) {
  Workspace space;
  space.tables["schedule"] = "plugin = \"toy\"\n";
  const std::vector<std::string> all = texts(space.load());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0], HasSubstr("schedule.plugin \"toy\" was not found; did you mean \"sched-toy\"?\n  looked in: "));
  EXPECT_THAT(all[0], HasSubstr("\n  installed schedulers: "));
}

TEST(PluginTables, TheKeysThatNoOptionMayBeNamedLikeAreThoseOfTheCore) {
  std::map<std::string, std::set<std::string>> expected;
  for (const CoreTable& table : core_tables()) {
    if (!table.kind) continue;
    const std::string name = table.name;
    if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
      expected[table.kind].insert(name.substr(dot + 1));
      continue;
    }
    for (const CoreKey& key : table.keys) expected[table.kind].insert(key.option.name);
  }
  for (const CoreTable& table : core_tables()) {
    if (!table.kind) continue;
    const auto keys = plugin::core_keys(table.kind);
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()), expected[table.kind]) << table.kind;
  }
}

TEST(PluginTables, AnOptionNamedLikeAKeyOfTheCoreRefusesThePlugin) {
  Workspace space;
  space.tables["optimizer"] = "plugin = \"optim-lr\"\nlr = 1e-3\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre("run.toml:13:10: optimizer.plugin \"optim-lr\" cannot be used: " SAMPLE_PLUGINS
                          "/optim-lr.so: optim-lr has an option \"lr\", which is a key of the core in [optimizer]\n"
                          "  rename the option; keys of the core in [optimizer]: lr, weight_decay, shard, prefetch"));
}

/// An unusable file is not replaced by one from the next folder.
TEST(PluginTables, ADanglingSymlinkIsRefusedNotPassedOver) {
  Workspace space;
  std::filesystem::create_symlink("gone.so", space.path("sched-toy.so"));
  space.tables["plugins"] = "path = [\".\", \"" SAMPLE_PLUGINS "\"]\n";
  EXPECT_THAT(texts(space.load()), ElementsAre("run.toml:18:10: schedule.plugin \"sched-toy\" cannot be used: "
                                               "sched-toy.so: is a dangling symlink to gone.so\n"
                                               "  remove the symlink, or build its target"));
}

TEST(PluginTables, FilesThatAPluginShadowsAreKept) {
  Workspace space;
  std::filesystem::copy_file(SAMPLE_PLUGINS "/sched-toy.so", space.path("sched-toy.so"));
  space.tables["plugins"] = "path = [\".\", \"" SAMPLE_PLUGINS "\"]\n";
  const LoadResult loaded = space.load();
  ASSERT_TRUE(loaded.run);
  EXPECT_EQ(loaded.run->schedule.library->file, space.path("sched-toy.so"));
  EXPECT_THAT(loaded.run->schedule.shadowed, ElementsAre(SAMPLE_PLUGINS "/sched-toy.so"));
  EXPECT_THAT(loaded.run->model.shadowed, IsEmpty());
}

TEST(PluginTables, APluginThatDiesAsItIsLoadedIsRefused) {
  Workspace space;
  space.tables["schedule"] = "plugin = \"sched-dies\"\n";
  const std::vector<std::string> all = texts(space.load());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0],
              testing::StartsWith("run.toml:18:10: schedule.plugin \"sched-dies\" cannot be used: " SAMPLE_PLUGINS
                                  "/sched-dies.so: its library initializer was killed by SIGKILL (Killed)\n"
                                  "  find what ended this process: "));
}

TEST(PluginTables, AVariableWhosePathALibraryCannotUseIsNamed) {
  Workspace space;
  space.tables["schedule"] = "plugin = \"sched-dies\"\n";
  ::setenv("SAMPLE_LOG", "/no/such/file", 1);
  EXPECT_THAT(texts(space.load()),
              ElementsAre(testing::AllOf(
                  HasSubstr("; it printed: failed to open '/no/such/file'\n"),
                  HasSubstr("\n  SAMPLE_LOG = /no/such/file in the environment may be the cause: correct or "
                            "unset it; otherwise find what ended this process: "))));
  ::unsetenv("SAMPLE_LOG");
}

TEST(PluginTables, RefusesAFileThatIsNotAPluginWithTheReason) {
  Workspace space;
  space.write("sched-broken.so", "no library");
  space.tables["plugins"] = "path = [\".\", \"" SAMPLE_PLUGINS "\"]\n";
  space.tables["schedule"] = "plugin = \"sched-broken\"\n";
  const std::vector<std::string> all = texts(space.load());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0], HasSubstr("schedule.plugin \"sched-broken\" cannot be used: sched-broken.so: "));
}

TEST(PluginTables, ARequiredOptionOfThePluginIsAskedFor) {
  Workspace space;
  space.tables["model"] = "plugin = \"model-toy\"\n";
  EXPECT_THAT(texts(space.load()),
              ElementsAre("run.toml:9:2: model.layers is missing (blocks)\n  add it below [model]"));
}

TEST(PluginTables, AnAxisWithoutPluginInheritsAllOfComm) {
  Workspace space;
  space.tables["comm"] = "plugin = \"comm-alpha\"\ntimeout_s = 5\nratio = 0.25\n";
  space.tables["comm.tensor"] = "timeout_s = 6\n";
  const LoadResult loaded = space.load();
  ASSERT_THAT(texts(loaded), IsEmpty());
  const PluginChoice& tensor = loaded.run->comm.at("tensor");
  EXPECT_EQ(tensor.name, "comm-alpha");
  EXPECT_EQ(tensor.table, "comm.tensor");
  EXPECT_EQ(tensor.named_in, "comm");
  EXPECT_EQ(tensor.options.integer("timeout_s"), 6);
  EXPECT_EQ(tensor.options.number("ratio"), 0.25);
  EXPECT_EQ(loaded.run->comm.at("data").table, "comm");
  EXPECT_EQ(loaded.run->comm.at("data").options.integer("timeout_s"), 5);
  EXPECT_EQ(shown(loaded, "comm.tensor.ratio"), "");
}

TEST(PluginTables, AnAxisWithAPluginStartsFromItsDefaults) {
  Workspace space;
  space.tables["comm"] = "plugin = \"comm-alpha\"\ntimeout_s = 5\n";
  space.tables["comm.tensor"] = "plugin = \"comm-alpha\"\n";
  space.tables["comm.pipeline"] = "plugin = \"comm-beta\"\nwindow = 2\n";
  const LoadResult loaded = space.load();
  ASSERT_THAT(texts(loaded), IsEmpty());
  EXPECT_EQ(loaded.run->comm.at("tensor").options.integer("timeout_s"), 600);
  EXPECT_EQ(loaded.run->comm.at("tensor").named_in, "comm.tensor");
  EXPECT_EQ(loaded.run->comm.at("pipeline").name, "comm-beta");
  EXPECT_EQ(loaded.run->comm.at("pipeline").options.integer("window"), 2);
}

TEST(CoreKeys, EveryRowIsSound) {
  for (const CoreTable& table : core_tables()) {
    for (const CoreKey& key : table.keys) {
      const Refusals answer = plugin::check_row(key.option);
      EXPECT_TRUE(answer.empty()) << table.name << ": " << answer.front().message;
      EXPECT_FALSE(key.derived && key.option.default_value) << table.name << "." << key.option.name;
      const std::string_view of = table.name;
      const bool is_read_by_load = of == "data" || of == "plugins";
      EXPECT_EQ(key.assign == nullptr, is_read_by_load) << table.name << "." << key.option.name << " has no effect";
    }
  }
}

} // namespace
} // namespace triax::config
