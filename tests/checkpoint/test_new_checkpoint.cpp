// SPDX-License-Identifier: Apache-2.0
// Folders that a subcommand is to write: names that are refused before anything is written, and what is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "checkpoint/new_checkpoint.hpp"
#include "os/path_names.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::checkpoint {
namespace {

namespace fs = std::filesystem;

using test::error_of;
using ::testing::HasSubstr;

class NewFolders : public ::testing::Test {
 protected:
  std::string refusal(const fs::path& name) {
    return error_of([&] { refuse_checkpoint_output(folder_.path() / name, "--output"); });
  }
  const test::TempFolder folder_;
};

TEST_F(NewFolders, AreRefusedByName) {
  EXPECT_EQ(refusal("x"), "no error");
  EXPECT_THAT(error_of([] { refuse_new_folder({}, "--output"); }), HasSubstr("--output is empty"));
  EXPECT_THAT(refusal("x.safetensors"), HasSubstr("--output must be a folder, but this is the name of a file"));
  EXPECT_THAT(refusal("x.toml"), HasSubstr("--output must be a folder, but this is the name of a file"));
  EXPECT_THAT(refusal("step-00000001"), HasSubstr("is a name that a run would take for its own checkpoint"));
  EXPECT_THAT(refusal(std::string(300, 'x')), HasSubstr("cannot be created: File name too long"));
  EXPECT_THAT(refusal("no/x"),
              HasSubstr(text("no/x: cannot be created: No such file or directory\n  create the folder {}, "
                             "or name one in an existing folder",
                             folder_ / "no")));
  test::write_file(folder_ / "file", "");
  EXPECT_THAT(refusal("file"), HasSubstr("file: already exists"));
  EXPECT_THAT(refusal("file/x"), HasSubstr("file is a file, not a folder"));
  fs::create_symlink("nowhere", folder_ / "link");
  EXPECT_THAT(refusal("link"), HasSubstr("link: already exists"));
  EXPECT_THAT(error_of([] { refuse_new_folder("/proc/x", "--output"); }), HasSubstr("/proc/x: cannot be created"));
  test::write_file(folder_ / kManifestFile, "");
  EXPECT_THAT(refusal("x"), HasSubstr("is in a checkpoint"));
}

/// As in a container, where each process has the same number.
TEST_F(NewFolders, IgnoreWhatAKilledProcessHasLeft) {
  fs::create_directory(folder_ / text(".x.partial-{}", ::getpid()));
  test::write_file(folder_ / text(".x.partial-{}-2", ::getpid()), "");
  StagedFolder folder(folder_ / "x");
  folder.file("content").finish();
  folder.complete();
  EXPECT_TRUE(fs::exists(folder_ / "x/content"));
}

TEST_F(NewFolders, CanBeRemovedAlsoIfTheyAreComplete) {
  {
    StagedFolder folder(folder_ / "x");
    folder.complete();
    folder.remove();
    StagedFolder other(folder_ / "y");
    other.remove();
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(NewFolders, AreNamedWithoutSlashes) {
  for (const char* name : {"a", "a/", "a//", "a/.", "a/./", "a/././/"}) EXPECT_EQ(os::without_slash(name), "a") << name;
  EXPECT_EQ(os::without_slash("/a/b/"), "/a/b");
  EXPECT_EQ(os::without_slash("./a/"), "./a");
  for (const char* name : {"", ".", "..", "/", "a/.."}) EXPECT_EQ(os::without_slash(name), name);
}

TEST_F(NewFolders, AreComparedWithOthersThroughLinks) {
  fs::create_directories(folder_ / "a/b");
  fs::create_directory_symlink("a/b", folder_ / "link");
  EXPECT_TRUE(os::is_inside(folder_ / "link/x", folder_ / "a"));
  EXPECT_TRUE(os::is_inside(folder_ / "link/../x", folder_ / "a/"));
  EXPECT_TRUE(os::is_inside(folder_ / "a", folder_ / "a/"));
  EXPECT_FALSE(os::is_inside(folder_ / "ab", folder_ / "a"));
  EXPECT_FALSE(os::is_inside(folder_ / "a", folder_ / "a/b"));
  EXPECT_FALSE(os::is_inside(folder_ / "a/../x", folder_ / "a"));
}

} // namespace
} // namespace triax::checkpoint
