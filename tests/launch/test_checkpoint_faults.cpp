// SPDX-License-Identifier: Apache-2.0
// Checkpoints on disks that are full or read-only, files that are missing or swapped, and several programs on one run:
// the last complete checkpoint stays usable, and the error names what is wrong.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "checkpoint/folder.hpp"
#include "launch/thread_run.hpp"
#include "launch/train_process.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kTriax = "'" TRIAX_BINARY_DIR "/bin/triax' ";
const std::string kTrain = kTriax + "train run.toml --set checkpoint.resume=auto ";

class CheckpointFaults : public ThreadRun {
 protected:
  Outcome resume(const std::string& sets) const { return train("--set checkpoint.resume=auto " + sets); }
  /// Runs a script in the folder, as root of a mount namespace. What it mounts disappears with it.
  Outcome mounted(const std::string& script) const {
    write_file(work_ / "script", script);
    return run_command("cd '" + work_.path().string() + "' && unshare -m bash script 2>&1");
  }
  bool may_mount() const {
    fs::create_directory(work_ / "disk");
    return mounted("mount -t tmpfs -o size=1m tmpfs disk").status == 0;
  }
  fs::path saved(std::int64_t step) const { return work_ / "run/checkpoints" / checkpoint::folder_name(step); }
  std::vector<std::string> checkpoints() const {
    std::vector<std::string> out;
    for (const fs::directory_entry& entry : fs::directory_iterator(work_ / "run/checkpoints"))
      out.push_back(entry.path().filename().string());
    std::ranges::sort(out);
    return out;
  }
};

/// The disk has no space for a fourth checkpoint. Records and logs are elsewhere.
TEST_F(CheckpointFaults, AFullDiskLeavesTheLastCompleteOne) {
  if (!may_mount()) GTEST_SKIP() << "this user may not mount a file system";
  const std::string keys =
      "--set run.dir=disk/run --set log.metrics=metrics.jsonl --set checkpoint.every=1 --set checkpoint.keep=9 ";
  const Outcome full = mounted("mount -t tmpfs -o size=700k tmpfs disk && " + kTrain + keys + "--set train.steps=6; " +
                               "echo status $?; ls -A disk/run/checkpoints; mount -o remount,size=9m disk; " + kTrain +
                               keys + "--set train.steps=8; echo status $?; ls -A disk/run/checkpoints");
  EXPECT_THAT(full.text, ContainsRegex("/disk/run/checkpoints/[^\n]*safetensors: cannot be written: No space left on "
                                       "device"));
  EXPECT_THAT(full.text, ContainsRegex("missing: [^\n]*checkpoint[^\n]*\n(.*\n)*status 1\n(step-[0-9]+\n)+"));
  EXPECT_THAT(full.text, ContainsRegex(" info rank 0: continues after step [1-5] from [^\n]*/disk/run/checkpoints/"));
  EXPECT_THAT(full.text, ContainsRegex("\nstatus 0\n(step-[0-9]+\n)*step-00000008\n$"));
  ASSERT_EQ(train("--set run.dir=whole --set train.steps=8").status, 0);
  EXPECT_EQ(records(work_ / "metrics.jsonl").back()["loss"], records(work_ / "whole/metrics.jsonl").back()["loss"]);
}

/// The last step is not saved, so the same command trains it again. A stop is not a clean one: README's exit statuses.
TEST_F(CheckpointFaults, ARunWhoseLastStepIsNotSavedFailsAndNamesTheCommandThatTrainsItAgain) {
  if (!may_mount()) GTEST_SKIP() << "this user may not mount a file system";
  const std::string disk = "mount -t tmpfs -o size=100k tmpfs disk && ", keys = "--set run.dir=disk/run ";
  const std::string metrics = "--set log.metrics=metrics.jsonl ";
  const Outcome ended = mounted(disk + kTrain + keys + metrics + "--set train.steps=2 --set train.stop_at=0");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.text, ContainsRegex("\nnext: to train again what is not saved, from step 1: [^\n]*triax train "
                                        "run.toml --set run.dir=disk/run --set log.metrics=metrics.jsonl --set "
                                        "train.steps=2 --set train.stop_at=0\n"));
  const Outcome stopped =
      mounted(disk + "rm metrics.jsonl; " + kTrain + keys + metrics + "--set train.steps=1000000 & pid=$!\n" +
              "while [ ! -s metrics.jsonl ] && kill -0 $pid; do sleep 0.01; done; kill -TERM $pid; wait $pid; exit $?");
  EXPECT_EQ(stopped.status, 1) << stopped.text;
  EXPECT_THAT(stopped.text, ContainsRegex("\nstopped by SIGTERM after step [0-9]+ of 1000000; [^\n]*missing: "));
}

/// A file system that is read-only refuses root too.
TEST_F(CheckpointFaults, AReadOnlyFolderIsNamedAndCanBeEvaluated) {
  if (!may_mount()) GTEST_SKIP() << "this user may not mount a file system";
  ASSERT_EQ(resume("--set train.steps=2").status, 0);
  const std::string read_only =
      "mount --bind run/checkpoints run/checkpoints && "
      "mount -o remount,bind,ro run/checkpoints && ";
  const Outcome saves = mounted(read_only + kTrain + "--set train.steps=3");
  EXPECT_EQ(saves.status, 1);
  EXPECT_THAT(saves.text, AllOf(ContainsRegex("run/checkpoints/[^\n]*: cannot be created: Read-only file system\n"),
                                HasSubstr("trained 1 step: "), HasSubstr("missing: ")));
  EXPECT_THAT(checkpoints(), ElementsAre("step-00000002"));
  const std::string all = "mount --bind run run && mount -o remount,bind,ro run && ";
  const Outcome begins = mounted(all + kTrain + "--set train.steps=4");
  EXPECT_EQ(begins.status, 2);
  EXPECT_THAT(begins.text, ContainsRegex("run.dir = \"[^\n]*/run\" cannot be written: [^\n]*Read-only file system"));
  const Outcome evaluates = mounted(all + kTriax + "evaluate run.toml 2>/dev/null");
  EXPECT_EQ(evaluates.status, 0);
  EXPECT_THAT(evaluates.text, ContainsRegex("^loss [0-9.]+, .*weights of run/checkpoints/step-00000002\n$"));
}

class DamagedCheckpoint : public CheckpointFaults {
 protected:
  DamagedCheckpoint() { EXPECT_EQ(resume("--set train.steps=2 --set checkpoint.every=1").status, 0); }
  /// Continuing is refused with this error, on the ranks that wrote it and on others, and starts no step.
  template <class Matcher>
  void expect_refused(const Matcher& error) const {
    const std::string before = read_file(work_ / "run/metrics.jsonl");
    for (const char* layout : {"", "--set parallel.data=1 --set parallel.tensor=1"}) {
      const Outcome next = resume(std::string("--set train.steps=3 ") + layout);
      EXPECT_EQ(next.status, 1) << next.text;
      EXPECT_THAT(next.text, error);
    }
    EXPECT_EQ(read_file(work_ / "run/metrics.jsonl"), before);
    EXPECT_THAT(checkpoints(), ElementsAre("step-00000001", "step-00000002"));
  }
  /// The advice of the error: without the damaged folder, the run continues from the one before.
  void expect_the_one_before_continues() const {
    fs::rename(saved(2), work_ / "damaged");
    const Outcome next = resume("--set train.steps=3");
    EXPECT_EQ(next.status, 0) << next.text;
    EXPECT_THAT(next.text, ContainsRegex("continues after step 1 from [^\n]*step-00000001"));
  }
};

TEST_F(DamagedCheckpoint, AMissingFileIsNamed) {
  ASSERT_TRUE(fs::remove(saved(2) / "weights-00001.safetensors"));
  expect_refused(HasSubstr("step-00000002/weights-00001.safetensors: does not exist\n"));
  expect_the_one_before_continues();
}

TEST_F(DamagedCheckpoint, SwappedFilesAreNamed) {
  fs::rename(saved(2) / "optimizer-00000.safetensors", work_ / "aside");
  fs::rename(saved(2) / "optimizer-00001.safetensors", saved(2) / "optimizer-00000.safetensors");
  fs::rename(work_ / "aside", saved(2) / "optimizer-00001.safetensors");
  expect_refused(
      ContainsRegex("step-00000002/optimizer-0000[01].safetensors: (checksum mismatch in the header|has "
                    "[0-9]+ bytes, expected [0-9]+|has no tensor \"[^\n\"]+/[mv]\\[[^\n]*\\]\")\n"));
  expect_the_one_before_continues();
}

/// Files of another step have the same names, sizes and headers, and other values.
TEST_F(DamagedCheckpoint, AFileOfAnotherStepIsNamedWithItsTensor) {
  fs::copy_file(saved(1) / "weights-00000.safetensors", saved(2) / "weights-00000.safetensors",
                fs::copy_options::overwrite_existing);
  expect_refused(
      ContainsRegex("step-00000002/weights-00000.safetensors: checksum mismatch in tensor "
                    "\"[^\n\"]+/[^\n\"]+\\[[^\n]*\\]\"\n"));
  expect_the_one_before_continues();
}

TEST_F(DamagedCheckpoint, AManifestOfANewerVersionIsNamed) {
  const fs::path manifest = saved(2) / "manifest.json";
  std::string content = read_file(manifest);
  const std::size_t at = content.find("\"version\":");
  ASSERT_NE(at, std::string::npos);
  content.replace(content.find('1', at), 1, "2");
  write_file(manifest, content);
  const Outcome next = resume("--set train.steps=3");
  EXPECT_EQ(next.status, 2);
  EXPECT_THAT(next.text, HasSubstr("step-00000002/manifest.json: "));
  EXPECT_THAT(next.text, HasSubstr("version"));
}

/// The second names the folder. The first is not disturbed, and its checkpoints can be evaluated.
TEST_F(CheckpointFaults, OnlyOneRunUsesAFolder) {
  TrainProcess first(work_.path(), "first",
                     {"train", "run.toml", "--set", "train.steps=1000000", "--set", "checkpoint.every=20"});
  const auto has_saved = [&] {
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(work_ / "run/checkpoints", none))
      if (entry.path().filename().string().starts_with("step-")) return true;
    return false;
  };
  while (!has_saved() && !first.ended()) ::usleep(2000);
  const Outcome second = resume("--set train.steps=1000000");
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.text, ContainsRegex("/run: another run uses this folder\n"));
  send_signal(first.pid(), SIGUSR1);
  EXPECT_EQ(first.wait(), 75) << first.err();
  const Outcome evaluated = run(work_.path(), "evaluate run.toml", "2>/dev/null");
  EXPECT_EQ(evaluated.status, 0);
  EXPECT_THAT(evaluated.text, StartsWith("loss "));
}

} // namespace
} // namespace triax::test
