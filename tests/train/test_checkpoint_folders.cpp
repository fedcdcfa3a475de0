// SPDX-License-Identifier: Apache-2.0
// The folder of a run that is moved or removed while it trains: checkpoints are only in its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "checkpoint/folder.hpp"
#include "os/folder_lock.hpp"
#include "train/resumed_run.hpp"

namespace triax {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Saves after steps 1 and 2, and calls `between` after the first.
class SavedTwice : public test::ResumedRun {
 protected:
  template <class Between>
  void run_once(const Between& between) {
    run_.keys["run.dir"] = "\"run\"";
    run_.keys["checkpoint.keep"] = "1";
    const config::RunConfig config = this->config({}, 0);
    const train::RunFolder reserved(config, "# resolved\n");
    const auto errors =
        start(config, test::TinySource(), [&](train::Rank& rank, train::Checkpoints& checkpoints, int, auto&) {
          rank.step();
          checkpoints.save();
          checkpoints.wait();
          between();
          rank.step();
          checkpoints.save();
          checkpoints.wait();
          newest_ = checkpoints.newest();
          missing_ = checkpoints.missing();
          return train::LoopResult();
        });
    EXPECT_THAT(errors, IsEmpty());
  }
  std::vector<std::int64_t> steps_in(const std::string& folder) const {
    std::vector<std::int64_t> out;
    for (const auto& found : checkpoint::checkpoints_in(run_.folder() / folder / "checkpoints"))
      out.push_back(found.step);
    return out;
  }
  /// A run that has the folder's name, with a checkpoint.
  void make_another_run() const {
    fs::create_directories(checkpoint("run", 9));
    test::write_file(checkpoint("run", 9) / "manifest.json", "x");
    test::write_file(run_.folder() / "run/resolved.toml", "x");
  }
  std::string newest_;
  std::int64_t missing_ = 0;
};

/// As after going back, where the step is saved again.
TEST_F(SavedTwice, ASecondSaveOfAStepThatFailsIsMissing) {
  run_.keys["run.dir"] = "\"run\"";
  const config::RunConfig config = this->config({}, 0);
  const train::RunFolder reserved(config, "# resolved\n");
  const auto body = [&](train::Rank& rank, train::Checkpoints& checkpoints, int, auto&) {
    rank.step();
    for (int save = 0; save < 2; ++save) {
      checkpoints.save();
      checkpoints.wait();
      missing_ = checkpoints.missing();
      EXPECT_EQ(missing_, save);
      fs::remove_all(run_.folder() / "run");
      make_another_run();
    }
    return train::LoopResult();
  };
  EXPECT_THAT(start(config, test::TinySource(), body), IsEmpty());
}

TEST_F(SavedTwice, AFolderThatIsMovedIsFollowed) {
  run_once([this] {
    fs::rename(run_.folder() / "run", run_.folder() / "moved");
    make_another_run();
  });
  EXPECT_EQ(missing_, 0);
  EXPECT_EQ(newest_, (run_.folder() / "moved/checkpoints/step-00000002").string());
  EXPECT_THAT(steps_in("moved"), ElementsAre(2));
  EXPECT_THAT(steps_in("run"), ElementsAre(9)) << "checkpoints of another run";
}

/// Before its first save, from the checkpoint that it has continued from.
TEST_F(SavedTwice, AfterAMoveARunRewindsInItsOwnFolder) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  run_.keys["checkpoint.every"] = "9";
  ASSERT_THAT(train({1, 1, 2}, 2), IsEmpty());
  const config::RunConfig config = this->config({1, 1, 2}, 0);
  std::vector<std::string> back(2);
  const auto body = [&](train::Rank& rank, train::Checkpoints& checkpoints, int index, auto&) {
    rank.step(); // both ranks have been restored
    if (index == 0) {
      fs::rename(run_.folder() / "run", run_.folder() / "moved");
      make_another_run();
    }
    back[static_cast<std::size_t>(index)] = checkpoints.rewind().value().folder.string();
    return train::LoopResult();
  };
  ASSERT_THAT(start(config, test::TinySource(), body), IsEmpty());
  const std::string own = (run_.folder() / "moved/checkpoints/step-00000002").string();
  EXPECT_THAT(back, ElementsAre(own, own));
}

/// It may still write its part of a checkpoint.
TEST_F(SavedTwice, ARankThatRewindsWaitsForRankZeroAsLongAsItWorks) {
  run_.keys["train.nonfinite"] = "\"rewind\"";
  run_.keys["checkpoint.every"] = "9";
  ASSERT_THAT(train({1, 1, 2}, 2), IsEmpty());
  run_.keys["train.stall_timeout_s"] = "1";
  const config::RunConfig config = this->config({1, 1, 2}, 0);
  const auto body = [&](train::Rank&, train::Checkpoints& checkpoints, int index, auto&) {
    if (index == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    EXPECT_EQ(checkpoints.rewind().value().step, 2);
    return train::LoopResult();
  };
  EXPECT_THAT(start(config, test::TinySource(), body), IsEmpty());
}

TEST_F(SavedTwice, AFolderThatWasRemovedIsMadeAgain) {
  run_once([this] { fs::remove_all(run_.folder() / "run"); });
  EXPECT_EQ(missing_, 0);
  EXPECT_THAT(steps_in("run"), ElementsAre(2));
}

TEST_F(SavedTwice, NotIfAnotherRunHasItsName) {
  run_once([this] {
    fs::remove_all(run_.folder() / "run");
    make_another_run();
  });
  EXPECT_EQ(missing_, 1);
  EXPECT_NO_THROW(os::FolderLock(run_.folder() / "run")) << "that run can continue";
  EXPECT_THAT(steps_in("run"), ElementsAre(9));
  EXPECT_EQ(std::distance(fs::directory_iterator(run_.folder() / "run/checkpoints"), {}), 1) << "nothing is left there";
}

} // namespace
} // namespace triax
