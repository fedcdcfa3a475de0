// SPDX-License-Identifier: Apache-2.0
// The folders of checkpoints: their names, what counts as complete, and what is removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "checkpoint/folder.hpp"
#include "support/temp_folder.hpp"

namespace {

bool can_exchange = true;

} // namespace

/// In place of libc's: a file system that cannot exchange names, such as NFS, rejects the flag.
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (can_exchange) return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  errno = EINVAL;
  return -1;
}

namespace triax::checkpoint {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;

class CheckpointFolder : public ::testing::Test {
 protected:
  void make(const std::string& name, bool complete) const {
    fs::create_directories(folder_ / name);
    test::write_file(folder_ / name / (complete ? "manifest.json" : "weights-00000.safetensors"), "x");
  }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_.path()))
      out.insert(entry.path().filename().string());
    return out;
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> out;
    for (const FoundCheckpoint& found : checkpoints_in(folder_.path())) out.push_back(found.step);
    return out;
  }
  test::TempFolder folder_;
};

TEST(CheckpointName, HasTheStep) {
  EXPECT_EQ(folder_name(200), "step-00000200");
  EXPECT_EQ(folder_name(1234567890), "step-1234567890");
  EXPECT_EQ(step_of("step-00000200"), 200);
  EXPECT_EQ(step_of("step-1234567890"), 1234567890);
  for (const char* name : {"step-200", "step-", "step-0000020x", "step-00000200-1", "xstep-00000200", "step--0000200"})
    EXPECT_FALSE(step_of(name)) << name;
}

TEST_F(CheckpointFolder, OnlyCompleteOnesAreFound) {
  for (const char* name : {"step-00000003", "step-00000001", ".step-00000004.partial-ab", "step-00000002-1"})
    make(name, true);
  make("step-00000009", false);
  EXPECT_THAT(steps(), ElementsAre(1, 3));
  EXPECT_THAT(incomplete_in(folder_.path()), ElementsAre(folder_ / "step-00000009"));
  EXPECT_TRUE(checkpoints_in(folder_ / "none").empty());
}

TEST_F(CheckpointFolder, ACommitMakesItVisibleAndKeepsWhatHasItsName) {
  make("step-00000005", false); // made by hand, or damaged
  const fs::path partial = partial_folder(folder_.path(), 5, "ab");
  make(partial.filename(), true);
  EXPECT_THAT(steps(), ElementsAre());
  commit(partial, folder_.path(), 5);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000005", "step-00000005-1"}));
  EXPECT_THAT(steps(), ElementsAre(5));
}

/// A run that has gone back saves a step again.
TEST_F(CheckpointFolder, ACommitReplacesACompleteOneOfItsStep) {
  make("step-00000005", true);
  test::write_file(folder_ / "step-00000005/earlier", "x");
  const fs::path partial = partial_folder(folder_.path(), 5, "ab");
  make(partial.filename(), true);
  commit(partial, folder_.path(), 5);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000005"}));
  EXPECT_FALSE(fs::exists(folder_ / "step-00000005/earlier"));
}

TEST_F(CheckpointFolder, WithoutExchangeACommitReplacesInTwoSteps) {
  can_exchange = false;
  for (const char* attempt : {"ab", "cd"}) {
    make("step-00000005", true);
    test::write_file(folder_ / "step-00000005/earlier", "x");
    const fs::path partial = partial_folder(folder_.path(), 5, attempt);
    make(partial.filename(), true);
    commit(partial, folder_.path(), 5);
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000005"}));
    EXPECT_FALSE(fs::exists(folder_ / "step-00000005/earlier"));
  }
  EXPECT_ANY_THROW(commit(folder_ / ".step-00000005.partial-none", folder_.path(), 5));
  EXPECT_THAT(steps(), ElementsAre(5)) << "the one before stays";
  can_exchange = true;
}

/// The process was killed between the two steps.
TEST_F(CheckpointFolder, WhatWasToBeReplacedIsRestored) {
  make(".step-00000005.replaced", true);
  make(".step-00000005.partial-ab", true);
  make(".step-00000007.replaced", true); // its new one is there
  make("step-00000007", true);
  remove_leftovers(folder_.path());
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000005", "step-00000007"}));
}

TEST_F(CheckpointFolder, LeftoversAreRemoved) {
  for (const char* name : {".step-00000004.partial-ab", ".step-00000001.removed", "step-00000003", "other"})
    make(name, true);
  remove_leftovers(folder_.path());
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000003", "other"}));
}

TEST_F(CheckpointFolder, OldOnesAreRemoved) {
  for (const std::int64_t step : {10, 20, 30, 40, 50}) make(folder_name(step), true);
  make("step-00000015", false);
  EXPECT_THAT(remove_old(folder_.path(), 2, 20), ElementsAre("step-00000010", "step-00000030"));
  EXPECT_THAT(steps(), ElementsAre(20, 40, 50));
  EXPECT_TRUE(names().contains("step-00000015")); // not complete: not known what it is
  remove_old(folder_.path(), 1, 0);
  EXPECT_THAT(steps(), ElementsAre(50));
  remove_old(folder_.path(), 3, 0);
  EXPECT_THAT(steps(), ElementsAre(50));
}

} // namespace
} // namespace triax::checkpoint
