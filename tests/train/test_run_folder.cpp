// SPDX-License-Identifier: Apache-2.0
// The run's folder: one run at a time, and the files of an earlier run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "os/replace_file.hpp"
#include "support/error_of.hpp"
#include "support/file_size_limit.hpp"
#include "train/run_folder_fixture.hpp"

namespace triax::train {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::write_file;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using triax::test::error_of;

TEST_F(RunFolderTest, ARunThatDoesNotBeginChangesNoFileOfAnEarlierRun) {
  train(2);
  write_file(run_.folder / "failure.json", "earlier");
  write_file(run_.folder / "timeline-rank-0.json", "earlier");
  const auto before = files();
  {
    const RunFolder folder(run_, "# another\n");
    const RunRecords records(run_, "# another\n", null_log());
    EXPECT_EQ(files(), before);
    EXPECT_EQ(folder.failure_file(), run_.folder / "failed-start.json");
  }
  EXPECT_EQ(files(), before);
}

TEST_F(RunFolderTest, ResolvedTomlIsKeptEvenIfItsRunRecordedNothing) {
  train(0, "# first\n");
  EXPECT_EQ(train(0, "# first\n"), ""); // the same run again
  EXPECT_EQ(train(0, "# second\n"),
            run_.folder.string() + ": files of the earlier run were moved: resolved.toml to resolved-1.toml");
  EXPECT_THAT(files(), Contains(Pair("run/resolved-1.toml", "# first\n")));
  EXPECT_THAT(files(), Contains(Pair("run/resolved.toml", "# second\n")));
}

TEST_F(RunFolderTest, MetricsInTheUsualPlaceGoWithTheirResolvedToml) {
  train(2, "# first\n");
  run_.log.metrics = folder_ / "elsewhere.jsonl";
  EXPECT_EQ(train(1, "# second\n"), run_.folder.string() +
                                        ": files of the earlier run were moved: metrics.jsonl to metrics-1.jsonl, "
                                        "resolved.toml to resolved-1.toml");
  EXPECT_THAT(files(), Contains(Pair("run/resolved-1.toml", "# first\n")));
  EXPECT_THAT(files(), Contains(Key("elsewhere.jsonl")));
}

TEST_F(RunFolderTest, ARunThatBeginsMovesAllFilesOfAnEarlierRunUnderOneNumber) {
  EXPECT_EQ(train(2, "# first\n"), "");
  write_file(run_.folder / "failure.json", "earlier failure");
  write_file(run_.folder / "timeline-rank-1.json", "earlier timeline");
  write_file(run_.folder / "failed-start.json", "a start in between");
  write_file(run_.folder / "metrics-1.jsonl", "older still");
  EXPECT_EQ(train(1, "# second\n"),
            run_.folder.string() +
                ": files of the earlier run were moved: metrics.jsonl to metrics-2.jsonl, failure.json to "
                "failure-2.json, resolved.toml to resolved-2.toml, timelines to timelines-2");
  const auto now = files();
  EXPECT_EQ(now.size(), 7u);
  EXPECT_THAT(now.at("run/metrics-2.jsonl"), HasSubstr("\n{\"step\":2,"));
  EXPECT_THAT(now, Contains(Pair("run/resolved-2.toml", "# first\n")));
  EXPECT_THAT(now, Contains(Pair("run/failure-2.json", "earlier failure")));
  EXPECT_THAT(now, Contains(Pair("run/timelines-2/timeline-rank-1.json", "earlier timeline")));
  EXPECT_THAT(now, Contains(Pair("run/metrics-1.jsonl", "older still")));
  EXPECT_THAT(now, Contains(Pair("run/resolved.toml", "# second\n")));
  EXPECT_THAT(now.at("run/metrics.jsonl"), Not(HasSubstr("\"step\":2")));
}

TEST_F(RunFolderTest, MetricsElsewhereAreMovedBesideThemselves) {
  run_.log.metrics = fs::canonical(folder_.path()) / "elsewhere/loss.values.json";
  train(1);
  EXPECT_THAT(train(1), HasSubstr("elsewhere/loss.values.json to loss.values-1.json, resolved.toml to "));
  EXPECT_THAT(files(), Contains(Key("elsewhere/loss.values-1.json")));
  EXPECT_THAT(files(), Contains(Key("elsewhere/loss.values.json")));
}

TEST_F(RunFolderTest, MetricsThatAreALinkStayOne) {
  fs::create_directories(run_.folder);
  fs::create_symlink("../target.jsonl", run_.log.metrics);
  train(2);
  EXPECT_THAT(train(1), HasSubstr("target.jsonl to target-1.jsonl"));
  EXPECT_TRUE(fs::is_symlink(run_.log.metrics));
  EXPECT_THAT(files().at("target-1.jsonl"), HasSubstr("{\"step\":2,"));
  EXPECT_THAT(files().at("target.jsonl"), Not(HasSubstr("{\"step\":2,")));
}

TEST_F(RunFolderTest, DoesNotTreatADeviceAsAnEarlierRun) {
  run_.log.metrics = "/dev/null";
  train(1);
  EXPECT_EQ(train(1), "");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(RunFolderTest, ARunThatContinuesKeepsItsRecords) {
  train(3);
  const std::string three = files().at("run/metrics.jsonl");
  fs::create_directory(run_.folder / "checkpoints");
  write_file(run_.folder / "checkpoints/keep", "x");
  EXPECT_EQ(train(5, "# a run\n", 3), "");
  const std::string five = files().at("run/metrics.jsonl");
  EXPECT_TRUE(five.starts_with(three));
  EXPECT_EQ(std::count(five.begin(), five.end(), '\n'), 5);
  // Killed after step 5, and continued after step 3, with half a line of step 6 in the file.
  write_file(run_.folder / "metrics.jsonl", five + "{\"step\":6,\"lo");
  EXPECT_THAT(train(4, "# a run\n", 3),
              HasSubstr("metrics.jsonl to metrics-1.jsonl, resolved.toml to resolved-1.toml"));
  EXPECT_EQ(files().at("run/metrics-1.jsonl"), five + "{\"step\":6,\"lo");
  const std::string four = files().at("run/metrics.jsonl");
  EXPECT_TRUE(four.starts_with(three));
  EXPECT_EQ(std::count(four.begin(), four.end(), '\n'), 4);
  EXPECT_TRUE(fs::exists(run_.folder / "checkpoints/keep"));
  EXPECT_THAT(train(1), HasSubstr("checkpoints to checkpoints-2"));
}

TEST_F(RunFolderTest, ARunThatRewindsKeepsTheRecordsThatItRepeatsAside) {
  const RunFolder folder(run_, "# a run\n");
  RunRecords records(run_, "# a run\n", null_log());
  records.begin();
  write_file(run_.folder / "timeline-rank-0.json", "x");
  for (int step = 1; step <= 3; ++step) records.write(record(step));
  EXPECT_EQ(records.rewind(3), "");
  const std::string three = files().at("run/metrics.jsonl");
  EXPECT_THAT(records.rewind(1), EndsWith("metrics.jsonl: records after step 1 are only in metrics-1.jsonl"));
  records.write(record(2));
  EXPECT_EQ(files().at("run/metrics-1.jsonl"), three);
  const std::string two = files().at("run/metrics.jsonl");
  EXPECT_TRUE(three.starts_with(two));
  EXPECT_EQ(std::count(two.begin(), two.end(), '\n'), 2);
  EXPECT_TRUE(fs::exists(run_.folder / "timeline-rank-0.json"));
  EXPECT_EQ(records.records(), 4);
}

TEST_F(RunFolderTest, RecordsThatAreLostBeforeARunRewindsAreStillMissing) {
  const RunFolder folder(run_, "# a run\n");
  RunRecords records(run_, "# a run\n", null_log());
  records.begin();
  records.write(record(1));
  {
    const test::FileSizeLimit full(fs::file_size(run_.folder / "metrics.jsonl"));
    records.write(record(2));
    records.write(record(3));
  }
  records.write(record(4));
  EXPECT_EQ(records.missing(), 2);
  records.rewind(1);
  EXPECT_EQ(records.missing(), 2);
  {
    const test::FileSizeLimit full(fs::file_size(run_.folder / "metrics.jsonl"));
    records.write(record(2));
  }
  records.write(record(3));
  EXPECT_EQ(records.missing(), 3);
  EXPECT_EQ(records.records(), 6);
}

TEST_F(RunFolderTest, ARunThatRewindsAfterAMoveLeavesAnotherRunAlone) {
  const RunFolder folder(run_, "# a run\n");
  RunRecords records(run_, "# a run\n", null_log());
  records.begin();
  for (int step = 1; step <= 3; ++step) records.write(record(step));
  fs::rename(run_.folder, folder_ / "moved");
  train(4, "# another\n");
  const std::string other = files().at("run/metrics.jsonl");
  EXPECT_THAT(records.rewind(1), EndsWith("moved/metrics.jsonl: records after step 1 are only in metrics-1.jsonl"));
  records.write(record(2));
  EXPECT_EQ(records.missing(), 0);
  EXPECT_EQ(files().at("run/metrics.jsonl"), other);
  const std::string two = files().at("moved/metrics.jsonl");
  EXPECT_EQ(std::count(two.begin(), two.end(), '\n'), 2);
}

TEST_F(RunFolderTest, MemoryIsRecordedAtTheStart) {
  fs::create_directories(run_.folder);
  RunRecords records(run_, "# a run\n", null_log());
  records.begin(0, {{"weights", 4096, false}, {"optimizer state", 8192, true}});
  EXPECT_EQ(read_file(run_.folder / "memory.json"),
            "{\"rank\":0,\"memory\":[{\"what\":\"weights\",\"bytes\":4096,\"on_host\":false},"
            "{\"what\":\"optimizer state\",\"bytes\":8192,\"on_host\":true}]}\n");
}

TEST_F(RunFolderTest, RecordsThatCannotBeMovedStay) {
  const RunFolder folder(run_, "# a run\n");
  RunRecords records(run_, "# a run\n", null_log());
  records.begin();
  for (int step = 1; step <= 3; ++step) records.write(record(step));
  fs::create_directories(os::temporary_name(run_.folder / "metrics.jsonl") / "in the way");
  EXPECT_THAT(error_of([&] { records.rewind(1); }), HasSubstr("metrics.jsonl"));
  records.write(record(2));
  EXPECT_EQ(records.missing(), 0);
  const std::string all = files().at("run/metrics.jsonl");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 4);
}

/// Another program may write to the file during the evaluation.
TEST_F(RunFolderTest, WithoutTheRecordOfAnEvaluationTheFileStays) {
  train(3);
  RunRecords records(run_, "# a run\n", null_log());
  records.begin(3);
  ASSERT_TRUE(records.lacks_evaluation(3));
  const std::string changed = files().at("run/metrics.jsonl") + "\n";
  write_file(run_.folder / "metrics.jsonl", changed);
  report::StepRecord evaluated = record(3);
  evaluated.eval_loss = 5.5;
  EXPECT_THAT(error_of([&] { records.add_evaluation(evaluated); }), HasSubstr("metrics.jsonl: no longer ends with"));
  EXPECT_EQ(files().at("run/metrics.jsonl"), changed);
}

/// Nothing is moved before the records that the run keeps are on the disk.
TEST_F(RunFolderTest, ARunThatContinuesWithoutSpaceLeavesItsRecordsInPlace) {
  train(300);
  const std::map<std::string, std::string> before = files();
  {
    const test::FileSizeLimit full(4096); // less than the records of 200 steps
    EXPECT_THAT(error_of([&] { train(250, "# a run\n", 200); }), HasSubstr("metrics.jsonl"));
  }
  EXPECT_EQ(files(), before);
  EXPECT_THAT(train(250, "# a run\n", 200), HasSubstr("metrics.jsonl to metrics-1.jsonl"));
  EXPECT_EQ(files().at("run/metrics-1.jsonl"), before.at("run/metrics.jsonl"));
  const std::string kept = files().at("run/metrics.jsonl");
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 250);
}

/// A start that was killed meanwhile has left a temporary file.
TEST_F(RunFolderTest, TemporaryRecordsOfAStartThatWasKilledAreRemoved) {
  train(3);
  write_file(os::temporary_name(run_.folder / "metrics.jsonl"), "{");
  train(5, "# a run\n", 3);
  EXPECT_FALSE(fs::exists(os::temporary_name(run_.folder / "metrics.jsonl")));
}

TEST_F(RunFolderTest, ARunThatContinuesDoesNotReadADevice) {
  run_.log.metrics = "/dev/zero";
  EXPECT_EQ(train(1, "# a run\n", 1), "");
}

TEST_F(RunFolderTest, AFailureIsReportedWhereItBelongs) {
  const RunFolder folder(run_, "");
  EXPECT_EQ(folder.failure_file(), run_.folder / "failed-start.json");
  RunRecords records(run_, "", null_log());
  records.begin();
  EXPECT_EQ(folder.failure_file(), run_.folder / "failure.json");
}

TEST_F(RunFolderTest, AFailureIsReportedInTheFolderThatWasMoved) {
  const RunFolder folder(run_, "");
  RunRecords records(run_, "", null_log());
  records.begin();
  fs::rename(run_.folder, folder_ / "moved");
  const RunFolder another(run_, "");
  EXPECT_EQ(folder.failure_file(), folder_ / "moved/failure.json");
  EXPECT_EQ(another.failure_file(), run_.folder / "failed-start.json");
  fs::remove_all(folder_ / "moved");
  EXPECT_FALSE(fs::exists(folder.failure_file().parent_path()));
}

TEST_F(RunFolderTest, AFolderThatCannotBeWrittenIsRefused) {
  write_file(folder_ / "file", "");
  run_.folder = folder_ / "file/run";
  EXPECT_THAT(error_of([&] { RunFolder(run_, ""); }),
              HasSubstr("file/run: the folder cannot be created: Not a directory\n  choose another with run.dir"));
  run_.folder = folder_ / "run";
  fs::create_directories(run_.folder / "resolved.toml.tmp"); // a folder with the name of a file
  EXPECT_THAT(error_of([&] { RunFolder(run_, ""); }),
              HasSubstr("run/resolved.toml: cannot be written: Is a directory"));
}

TEST_F(RunFolderTest, ASecondRunInTheSameFolderIsRefused) {
  {
    const RunFolder first(run_, "");
    EXPECT_THAT(error_of([&] { RunFolder(run_, ""); }),
                HasSubstr(run_.folder.string() + ": another run uses this folder\n"));
  }
  EXPECT_EQ(error_of([&] { RunFolder(run_, ""); }), "no error"); // the first run has ended
}

} // namespace
} // namespace triax::train
