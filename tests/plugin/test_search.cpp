// SPDX-License-Identifier: Apache-2.0
// Search for plugin files: order of folders, shadowing, and names that are not found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "plugin/loader.hpp"
#include "scratch.hpp"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

class Search : public testing::Test {
 protected:
  Search() { unsetenv("TRIAX_PLUGIN_PATH"); }
  ~Search() override { unsetenv("TRIAX_PLUGIN_PATH"); }
  fs::path touch(const fs::path& folder, const std::string& name) {
    fs::create_directories(scratch_ / folder);
    std::ofstream(scratch_ / folder / name).close();
    return scratch_ / folder / name;
  }
  Scratch scratch_;
};

TEST_F(Search, TomlThenEnvironmentThenBuiltIn) {
  setenv("TRIAX_PLUGIN_PATH", "/first::/second:", 1);
  const auto folders = search_folders({{"mine", "plugins.path, run.toml:2"}});
  ASSERT_EQ(folders.size(), 4U);
  EXPECT_EQ(folders[0].folder, "mine");
  EXPECT_EQ(folders[0].origin, "plugins.path, run.toml:2");
  EXPECT_EQ(folders[1].folder, "/first");
  EXPECT_EQ(folders[1].origin, "TRIAX_PLUGIN_PATH");
  EXPECT_EQ(folders[2].folder, "/second");
  EXPECT_EQ(folders[3].origin, "");
}

TEST_F(Search, TheEnvironmentNamesFoldersThatAreThere) {
  EXPECT_TRUE(check_environment().empty());
  const std::string there = touch("a", "sched-a.so").parent_path().string();
  setenv("TRIAX_PLUGIN_PATH", (there + "::" + there + ":").c_str(), 1);
  EXPECT_TRUE(check_environment().empty());
  for (const std::string& bad : {(scratch_ / "gone").string(), there + "/sched-a.so"}) {
    setenv("TRIAX_PLUGIN_PATH", (there + ":" + bad).c_str(), 1);
    const Refusals answer = check_environment();
    EXPECT_EQ(answer.front().message, "TRIAX_PLUGIN_PATH names " + bad + ", which is not a folder");
    EXPECT_EQ(answer.front().hint, "create it, or remove it from the variable");
  }
}

TEST_F(Search, TheBuiltInFolderLiesBesideTheCore) {
  const auto folders = search_folders({});
  ASSERT_EQ(folders.size(), 1U);
  EXPECT_EQ(folders[0].folder, fs::canonical(TRIAX_BINARY_DIR) / "lib" / "triax" / "plugins");
}

TEST_F(Search, TheFirstFolderThatHasItWins) {
  const fs::path second = touch("b", "sched-a.so");
  EXPECT_EQ(find("sched-a", {{scratch_ / "a", ""}, {scratch_ / "b", ""}}).file, second);
  const fs::path first = touch("a", "sched-a.so");
  const Found found = find("sched-a", {{scratch_ / "a", ""}, {scratch_ / "b", ""}});
  EXPECT_EQ(found.file, first);
  EXPECT_THAT(found.shadowed, testing::ElementsAre(second));
}

TEST_F(Search, ReportsTheSearchedFoldersAndTheNearestName) {
  touch("a", "sched-1f1b.so");
  touch("a", "optim-sgd.so");
  touch("b", "sched-1f1b.txt");
  try {
    find("sched-1f1p",
         {{scratch_ / "a", "plugins.path, run.toml:2"}, {scratch_ / "gone", "TRIAX_PLUGIN_PATH"}, {scratch_ / "b", ""}},
         {}, FolderChoice::key);
    FAIL() << "it was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "plugin \"sched-1f1p\" was not found; did you mean \"sched-1f1b\"?");
    EXPECT_EQ(error.where(), "");
    EXPECT_EQ(error.hint(),
              text("looked in: {} (plugins.path, run.toml:2), {} (TRIAX_PLUGIN_PATH; no such folder), {}\n"
                   "  installed schedulers: sched-1f1b\n"
                   "  correct the name, or name the plugin's folder with plugins.path or TRIAX_PLUGIN_PATH",
                   scratch_ / "a", scratch_ / "gone", scratch_ / "b"));
  }
}

TEST_F(Search, SuggestsNoPluginOfAnotherKind) {
  touch("a", "sched-1f1b.so");
  touch("a", "plan-sc21.so");
  touch("a", "unusual.so");
  const auto failure = [this](const char* name) {
    try {
      find(name, {{scratch_ / "a", ""}});
      return std::string("it was found");
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(failure("plan-sched-1f1b"), "plugin \"plan-sched-1f1b\" was not found");
  EXPECT_EQ(failure("plan-sc22"), "plugin \"plan-sc22\" was not found; did you mean \"plan-sc21\"?");
  EXPECT_EQ(failure("unusuall"), "plugin \"unusuall\" was not found; did you mean \"unusual\"?");
}

TEST_F(Search, ABrokenFileIsFoundAllTheSame) {
  const fs::path broken = touch("a", "sched-broken.so");
  EXPECT_EQ(find("sched-broken", {{scratch_ / "a", ""}}).file, broken);
}

/// An unusable file with the plugin's name is not replaced by one from a later folder.
TEST_F(Search, AnEntryThatCannotBeReadIsFoundAllTheSame) {
  touch("b", "sched-a.so");
  fs::create_directory(scratch_ / "a");
  const fs::path entry = scratch_ / "a" / "sched-a.so";
  const std::vector<SearchFolder> folders = {{scratch_ / "a", ""}, {scratch_ / "b", ""}};
  for (const char* target : {"gone.so", "sched-a.so"}) { // dangling; a symlink loop
    fs::create_symlink(target, entry);
    EXPECT_EQ(find("sched-a", folders).file, entry) << target;
    EXPECT_THAT(candidates(scratch_ / "a"), testing::ElementsAre(entry));
    fs::remove(entry);
  }
  fs::create_directory(entry);
  EXPECT_EQ(find("sched-a", folders).file, entry);
}

TEST_F(Search, AnotherWayToTheSameFileShadowsNothing) {
  const fs::path file = touch("a", "sched-a.so");
  fs::create_directory(scratch_ / "b");
  fs::create_symlink(file, scratch_ / "b" / "sched-a.so");
  EXPECT_THAT(find("sched-a", {{scratch_ / "b", ""}, {scratch_ / "a", ""}}).shadowed, testing::IsEmpty());
}

TEST_F(Search, RefusesPathsAsNames) {
  touch("a", "sched-a.so");
  const std::vector<SearchFolder> folders = {{scratch_.folder(), ""}};
  for (const char* name : {"a/sched-a", "sched-a.so", ""}) {
    try {
      find(name, folders);
      FAIL() << name << " was found";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), text("plugin \"{}\" is not a valid name", name));
    }
  }
}

TEST_F(Search, CandidatesAreTheLibrariesByName) {
  touch("a", "b.so");
  touch("a", "a.so");
  touch("a", "readme.md");
  EXPECT_THAT(candidates(scratch_ / "a"), testing::ElementsAre(scratch_ / "a" / "a.so", scratch_ / "a" / "b.so"));
  EXPECT_THAT(candidates(scratch_ / "gone"), testing::IsEmpty());
}

} // namespace

} // namespace triax::plugin
