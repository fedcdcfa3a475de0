// SPDX-License-Identifier: Apache-2.0
// Checks whether files can be created in a folder, for folders of every kind, and files that cannot be read.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "os/folder_access.hpp"
#include "os/input_file.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace triax::data {
namespace {

using namespace triax::test;

/// Root may write anywhere; during its lifetime, this process runs as an unprivileged user.
class Unprivileged {
 public:
  Unprivileged() : before_(::geteuid()) { became_ = before_ != 0 || ::seteuid(65534) == 0; }
  ~Unprivileged() {
    if (::seteuid(before_) != 0) std::abort();
  }
  bool became() const { return became_; }

 private:
  uid_t before_;
  bool became_ = false;
};

TEST(FolderAccess, AFolderThatCanBeMadeIsNotMade) {
  const TempFolder folder;
  EXPECT_EQ(os::why_not_writable(folder.path()), "");
  EXPECT_EQ(os::why_not_writable(folder.path() / "a/b/c"), "");
  EXPECT_EQ(os::why_not_writable("does-not-exist/either"), "") << "in the working folder";
  EXPECT_EQ(os::why_not_creatable("does-not-exist"), "");
  EXPECT_EQ(os::why_not_creatable("/proc/x"), "/proc is part of a kernel file system, where files cannot be created");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
}

TEST(FolderAccess, RefusesFilesAndDanglingLinks) {
  const TempFolder folder;
  write_file(folder / "file", "");
  std::filesystem::create_symlink("gone", folder / "link");
  const std::string file = (folder / "file").string(), link = (folder / "link").string();
  EXPECT_EQ(os::why_not_writable(file), file + " is a file, not a folder");
  EXPECT_EQ(os::why_not_writable(file + "/a/b"), file + " is a file, not a folder");
  EXPECT_EQ(os::why_not_writable(link), link + " is a dangling symbolic link");
  EXPECT_EQ(os::why_not_writable(link + "/a"), link + " is a dangling symbolic link");
}

/// Of the ranks of a run, one may create its folder while another checks it.
TEST(FolderAccess, AFolderThatComesAndGoesIsWritable) {
  const TempFolder folder;
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) {
      std::filesystem::create_directory(folder / "run");
      std::filesystem::remove(folder / "run");
    }
  });
  std::string why;
  for (int i = 0; i < 20000; ++i) why += os::why_not_writable(folder / "run");
  ends = true;
  other.join();
  EXPECT_EQ(why, "");
}

TEST(FolderAccess, RefusesKernelFileSystems) {
  const std::string why = " is part of a kernel file system, where files cannot be created";
  EXPECT_EQ(os::why_not_writable("/proc/runs/mine"), "/proc" + why);
  EXPECT_EQ(os::why_not_writable("/proc/self"), "/proc/self" + why);
}

TEST(FolderAccess, RightsCount) {
  const TempFolder folder;
  const std::string shut = (folder / "shut").string(), hidden = (folder / "hidden").string();
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(shut.c_str(), 0555), 0);
  ASSERT_EQ(::mkdir(hidden.c_str(), 0000), 0);
  {
    const Unprivileged unprivileged;
    if (!unprivileged.became()) GTEST_SKIP() << "this process may write anywhere, and cannot become one that may not";
    EXPECT_EQ(os::why_not_writable(shut), shut + ": Permission denied");
    EXPECT_EQ(os::why_not_writable(shut + "/a/b"), shut + ": Permission denied");
    EXPECT_EQ(os::why_not_writable(hidden + "/a"), hidden + "/a: Permission denied");
  }
  ASSERT_EQ(::chmod(hidden.c_str(), 0755), 0);
}

TEST(FileAccess, AFileWithoutPermissionHasANextStep) {
  const TempFolder folder;
  const std::filesystem::path file = folder / "text.idx";
  write_file(file, "");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0000), 0);
  const Unprivileged unprivileged;
  if (!unprivileged.became()) GTEST_SKIP() << "this process may read anywhere, and cannot become one that may not";
  EXPECT_EQ(error_of([&] { os::InputFile opened(file, "prepare it"); }),
            file.string() +
                ": cannot be opened: Permission denied\n  let this user read the file and search its folders "
                "(chmod, chown), or run as its owner");
}

} // namespace
} // namespace triax::data
