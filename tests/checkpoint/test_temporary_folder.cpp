// SPDX-License-Identifier: Apache-2.0
// A temporary folder is removed with its process, however that ends.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "os/temporary_folder.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::os {
namespace {

namespace fs = std::filesystem;

class TemporaryFolders : public ::testing::Test {
 protected:
  TemporaryFolders() { ::setenv("TMPDIR", base_.path().c_str(), 1); }
  ~TemporaryFolders() override { ::unsetenv("TMPDIR"); }
  bool is_empty() const { return fs::is_empty(base_.path()); }
  static void fill(const fs::path& folder) {
    fs::create_directory(folder / "inside");
    std::ofstream(folder / "inside/file") << "content";
  }

  test::TempFolder base_;
};

TEST_F(TemporaryFolders, IsRemovedWithTheObject) {
  {
    const TemporaryFolder folder("mine-");
    EXPECT_TRUE(folder.path().filename().string().starts_with("mine-"));
    EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
    fill(folder.path());
  }
  EXPECT_TRUE(is_empty());
}

TEST_F(TemporaryFolders, IsRemovedAfterItsProcessIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    const TemporaryFolder folder("mine-");
    fill(folder.path());
    ::raise(SIGKILL);
  }
  ASSERT_GT(child, 0);
  ::waitpid(child, nullptr, 0);
  while (!is_empty()) ::usleep(1000); // another process removes it
}

TEST_F(TemporaryFolders, NamesTheFolderThatIsNotThere) {
  ::setenv("TMPDIR", (base_.path() / "none").c_str(), 1);
  EXPECT_EQ(test::error_of([] { TemporaryFolder("mine-"); }),
            (base_.path() / "none").string() + ": cannot create a temporary folder: No such file or directory\n" +
                "  set TMPDIR to a folder that this user can write");
}

TEST_F(TemporaryFolders, ACopyOfTheProcessLeavesIt) {
  const TemporaryFolder folder("mine-");
  const pid_t child = ::fork();
  if (child == 0) {
    folder.~TemporaryFolder();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(folder.path()));
}

} // namespace
} // namespace triax::os
