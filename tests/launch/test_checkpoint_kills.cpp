// SPDX-License-Identifier: Apache-2.0
// Commands on checkpoints that are killed at any instant: their output is absent or complete, their input is unchanged,
// and the same command then succeeds.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "checkpoint/manifest.hpp"
#include "launch/thread_run.hpp"
#include "launch/train_process.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;

/// TRIAX_KILLS sets the number of kills of each test.
int number_of_kills() {
  const char* given = std::getenv("TRIAX_KILLS");
  return given ? std::atoi(given) : 4;
}

class CheckpointKills : public ThreadRun {
 protected:
  CheckpointKills() {
    const Outcome trained = train(
        "--set model.hidden=64 --set checkpoint.every=2 --set train.steps=4 --set "
        "checkpoint.async=false");
    EXPECT_EQ(trained.status, 0) << trained.text;
    input_ = content("run/checkpoints");
    EXPECT_EQ(input_.size(), 2u * 9);
  }

  /// The files of a folder by name.
  std::map<std::string, std::string> content(const std::string& folder) const {
    std::map<std::string, std::string> out;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(work_ / folder))
      if (entry.is_regular_file()) out[entry.path().string()] = read_file(entry.path());
    return out;
  }

  /// Kills the command at random instants of its run, and calls check() after each.
  template <class Check>
  void kill_at_any_instant(const std::vector<std::string>& command, const Check& check) {
    const Clock::time_point began = Clock::now();
    ASSERT_EQ(TrainProcess(work_.path(), "whole", command).wait(), 0) << read_file(work_ / "whole.err");
    const std::chrono::duration<double> whole = Clock::now() - began;
    check();
    std::mt19937 random(static_cast<unsigned>(::getpid()));
    for (int kill = 0; kill < number_of_kills(); ++kill) {
      TrainProcess process(work_.path(), "killed", command);
      std::this_thread::sleep_for(whole * std::uniform_real_distribution<>(0.3, 1)(random));
      if (!process.ended()) send_signal(process.pid(), SIGKILL);
      process.wait();
      check();
      ASSERT_EQ(content("run/checkpoints"), input_) << "kill " << kill;
    }
    ASSERT_EQ(TrainProcess(work_.path(), "after", command).wait(), 0) << read_file(work_ / "after.err");
    check();
  }

  std::map<std::string, std::string> input_;
};

TEST_F(CheckpointKills, ConvertLeavesTheFileAbsentOrWhole) {
  std::string whole;
  kill_at_any_instant({"checkpoint", "convert", "run", "out.safetensors", "--force"}, [&] {
    std::error_code none;
    if (!fs::exists(work_ / "out.safetensors", none)) return;
    const std::string now = read_file(work_ / "out.safetensors");
    if (whole.empty()) whole = now;
    ASSERT_TRUE(now == whole);
    fs::remove(work_ / "out.safetensors");
  });
  EXPECT_FALSE(whole.empty());
}

TEST_F(CheckpointKills, ConvertReplacesAFileByAWholeOne) {
  write_file(work_ / "out.safetensors", "before");
  std::string whole;
  kill_at_any_instant({"checkpoint", "convert", "run", "out.safetensors", "--force"}, [&] {
    const std::string now = read_file(work_ / "out.safetensors");
    if (whole.empty()) whole = now;
    ASSERT_TRUE(now == whole || now == "before");
    write_file(work_ / "out.safetensors", "before");
  });
}

TEST_F(CheckpointKills, AverageLeavesTheFolderAbsentOrWhole) {
  int found = 0;
  kill_at_any_instant({"checkpoint", "average", "mean", "--last", "2", "run"}, [&] {
    std::error_code none;
    if (!fs::exists(work_ / "mean", none)) return;
    ++found;
    const Outcome verified = run(work_.path(), "checkpoint verify mean", "2>&1");
    ASSERT_EQ(verified.status, 0) << verified.text;
    fs::remove_all(work_ / "mean");
  });
  EXPECT_GE(found, 2) << "before and after the kills";
}

} // namespace
} // namespace triax::test
