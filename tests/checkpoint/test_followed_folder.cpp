// SPDX-License-Identifier: Apache-2.0
// A folder is followed when it is moved, and not when another has its name.
#include <gtest/gtest.h>

#include <filesystem>

#include "os/followed_folder.hpp"
#include "support/temp_folder.hpp"

namespace triax::os {
namespace {

namespace fs = std::filesystem;

class Followed : public ::testing::Test {
 protected:
  Followed() { fs::create_directory(path_); }
  const test::TempFolder folder_;
  const fs::path path_ = fs::canonical(folder_.path()) / "run", moved_ = fs::canonical(folder_.path()) / "moved";
};

TEST_F(Followed, KeepsItsNameWhileItHasIt) {
  const FollowedFolder followed(path_);
  EXPECT_EQ(followed.now(), path_);
  EXPECT_FALSE(followed.is_gone());
}

TEST_F(Followed, IsWhereItWasMovedTo) {
  const FollowedFolder followed(path_);
  fs::rename(path_, moved_);
  EXPECT_EQ(followed.now(), moved_);
  fs::create_directory(path_); // another
  EXPECT_EQ(followed.now(), moved_);
  EXPECT_FALSE(followed.is_gone());
}

TEST_F(Followed, IsGoneIfItWasRemovedWhateverHasItsName) {
  FollowedFolder followed(path_);
  fs::remove(path_);
  EXPECT_TRUE(followed.is_gone());
  EXPECT_EQ(followed.now(), path_);
  fs::create_directory(path_);
  EXPECT_TRUE(followed.is_gone());
  followed.reopen();
  EXPECT_FALSE(followed.is_gone());
}

TEST_F(Followed, ALinkThatIsRetargetedIsNotFollowed) {
  const fs::path link = path_.parent_path() / "link";
  fs::create_directory_symlink(path_, link);
  const FollowedFolder followed(link);
  EXPECT_EQ(followed.now(), link);
  fs::remove(link);
  fs::create_directory(moved_);
  fs::create_directory_symlink(moved_, link);
  EXPECT_EQ(followed.now(), path_);
}

TEST_F(Followed, OneThatIsNotThereIsGone) {
  const FollowedFolder followed(path_ / "none");
  EXPECT_TRUE(followed.is_gone());
  EXPECT_EQ(followed.now(), path_ / "none");
}

} // namespace
} // namespace triax::os
