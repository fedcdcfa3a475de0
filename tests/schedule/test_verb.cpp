// SPDX-License-Identifier: Apache-2.0
// triax schedule: output, files and exit status. Error messages are cases of tests/golden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "golden/program.hpp"
#include "support/golden.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::StartsWith;

const char* const kFaulty = "--scheduler sched-faulty --path " FIXTURES " --pipeline 2 --microbatches 2 ";

Outcome schedule(const std::string& arguments, const std::string& streams = "2>&1") {
  return run(".", "schedule " + arguments, streams);
}

struct Shown {
  const char *scheduler, *shape;
};

void PrintTo(const Shown& shown, std::ostream* out) {
  *out << shown.scheduler << shown.shape;
}

class Shapes : public testing::TestWithParam<Shown> {
 protected:
  void expect(const char* format, const char* ending) {
    const Shown& of = GetParam();
    const Outcome told = schedule(text("--scheduler {} {} --format {}", of.scheduler, of.shape, format));
    EXPECT_EQ(told.status, 0);
    std::string file = text("{}{}{}", of.scheduler, of.shape, ending);
    for (const char* flag : {" --pipeline ", " --microbatches ", " --chunks "}) replace_all(file, flag, "-");
    expect_golden(std::filesystem::path(GOLDEN) / file, told.text);
  }
};

TEST_P(Shapes, AsCsv) {
  expect("csv", ".csv");
}
TEST_P(Shapes, AsTable) {
  expect("table", ".txt");
}

// Four ranks and eight microbatches, as in figures 3 and 4 of SC'21 (arXiv 2104.04473).
INSTANTIATE_TEST_SUITE_P(Figures, Shapes,
                         testing::Values(Shown{"sched-gpipe", " --pipeline 4 --microbatches 8"},
                                         Shown{"sched-1f1b", " --pipeline 4 --microbatches 8"},
                                         Shown{"sched-interleaved", " --pipeline 4 --microbatches 8 --chunks 2"},
                                         Shown{"sched-breadth-first", " --pipeline 4 --microbatches 8 --chunks 2"},
                                         Shown{"sched-zb-h1", " --pipeline 4 --microbatches 8"},
                                         Shown{"sched-zb-h2", " --pipeline 4 --microbatches 8"},
                                         Shown{"sched-zb-v", " --pipeline 4 --microbatches 8 --chunks 2"},
                                         Shown{"sched-1f1b", " --pipeline 12 --microbatches 3"},
                                         Shown{"sched-interleaved", " --pipeline 1 --microbatches 2 --chunks 4"}));

TEST(ScheduleVerb, DrawsATableThatFitsAPage) {
  const Outcome told = schedule("--scheduler sched-1f1b --pipeline 4 --microbatches 8");
  std::istringstream lines(told.text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(ScheduleVerb, TheDocumentedDrawingsAreCurrent) {
  for (const char* scheduler : {"sched-1f1b", "sched-zb-h1"})
    EXPECT_THAT(read_file(TRIAX_SOURCE_DIR "/docs/schedules.md"),
                HasSubstr(schedule(text("--scheduler {} --pipeline 4 --microbatches 8", scheduler)).text));
}

TEST(ScheduleVerb, WritesAFileInsteadOfStdout) {
  const TempFolder work;
  write_file(work / "rows.csv", "what was there before, and longer than what comes");
  const std::string shape = "--scheduler sched-gpipe --pipeline 1 --microbatches 1 --format csv ";
  const Outcome told = schedule(shape + "--output " + (work / "rows.csv").string());
  EXPECT_EQ(told.status, 0);
  EXPECT_EQ(told.text, "");
  EXPECT_EQ(read_file(work / "rows.csv"), "0F0,0B0\n");
  const Outcome full = schedule(shape + "--output /dev/full");
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.text, "/dev/full: cannot be written: No space left on device\n");
  const Outcome nowhere = schedule(shape + "--output " + (work / "none" / "rows.csv").string());
  EXPECT_EQ(nowhere.status, 2); // found before anything is created
}

TEST(ScheduleVerb, DoesNotReplaceItsInput) {
  const TempFolder work;
  write_file(work / "rows.csv", "0F0,0B0\n");
  const Outcome told =
      schedule("--file " + (work / "rows.csv").string() + " --output " + (work / "." / "rows.csv").string());
  EXPECT_EQ(told.status, 2);
  EXPECT_THAT(told.text, HasSubstr("rows.csv is an input and would be overwritten"));
  EXPECT_EQ(read_file(work / "rows.csv"), "0F0,0B0\n");
}

// A file is replaced as a whole, so readers see either the old or the new content.
TEST(ScheduleVerb, ReplacesAFileAsAWhole) {
  const TempFolder work;
  write_file(work / "rows.csv", "what was there before");
  fs::permissions(work / "rows.csv", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("rows.csv", work / "link.csv");
  std::ifstream before(work / "rows.csv");
  const std::string shape = "--scheduler sched-gpipe --pipeline 1 --microbatches 1 --format csv --output ";
  ASSERT_EQ(schedule(shape + (work / "link.csv").string()).status, 0);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(before), {}), "what was there before");
  EXPECT_EQ(read_file(work / "rows.csv"), "0F0,0B0\n");
  EXPECT_TRUE(fs::is_symlink(work / "link.csv"));
  EXPECT_EQ(fs::status(work / "rows.csv").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  // An open standard output is written to, not replaced.
  EXPECT_EQ(run(work.path(), "schedule " + shape + "/dev/stdout", "> shared; cat shared").text, "0F0,0B0\n");
  const std::string also = "schedule " + shape + "/dev/fd/3";
  run(work.path(), also, "3> shared >&2; stat -c %i shared > before");
  run(work.path(), also, "3>> shared >&2; stat -c %i shared > after");
  EXPECT_EQ(read_file(work / "before"), read_file(work / "after"));
  // If the new file cannot be completed, the old one remains.
  fs::create_directories(work / "rows.csv.partial/in the way");
  EXPECT_EQ(schedule(shape + (work / "rows.csv").string()).status, 1);
  EXPECT_EQ(read_file(work / "rows.csv"), "0F0,0B0\n");
}

TEST(ScheduleVerb, ShowsARunsOwnScheduleAndShape) {
  const TempFolder work;
  write_file(work / "run.toml", read_file(GOLDEN_CASES "/schedule-m-not-a-multiple/run.toml"));
  write_file(work / "text.txt", std::string(1000, 'x'));
  run(work.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
  const std::string verb = "schedule run.toml --set data.path=text --set batch.global=4 --format csv ";
  EXPECT_EQ(run(work.path(), verb + "--set parallel.pipeline=2", "2>&1").text,
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
  EXPECT_EQ(run(work.path(),
                verb + "--set parallel.chunks=1 --set parallel.pipeline=1 --set schedule.plugin=sched-1f1b", "2>&1")
                .text,
            "0F0,0B0,0F1,0B1\n");
}

TEST(ScheduleVerb, ShowsTheGathersOfARunWhoseBoundariesAreScattered) {
  const TempFolder folder;
  write_file(folder / "run.toml", read_file(GOLDEN_CASES "/schedule-m-not-a-multiple/run.toml"));
  write_file(folder / "text.txt", std::string(1000, 'x'));
  run(folder.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
  const Outcome told = run(folder.path(),
                           "schedule run.toml --set data.path=text --set batch.global=4 --set parallel.pipeline=2 "
                           "--set parallel.tensor=2 --set parallel.scatter_gather=true --lowered --format csv",
                           "");
  EXPECT_EQ(told.status, 0) << told.text;
  EXPECT_THAT(told.text, StartsWith("0F0,0SEND_F0,"));
  EXPECT_THAT(told.text, HasSubstr("1RECV_F0,1GATHER_F0,1F0,"));
  write_file(folder / "program.csv", told.text);
  EXPECT_EQ(schedule("--file " + (folder / "program.csv").string(), ">/dev/null").status, 0);
  std::string ungathered = told.text;
  replace_all(ungathered, "1GATHER_F0,", "");
  write_file(folder / "program.csv", ungathered);
  const Outcome refused = schedule("--file " + (folder / "program.csv").string());
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text, HasSubstr("1F0: it needs 1GATHER_F0, which is not in the program"));
}

TEST(ScheduleVerb, SetsOptionsOfTheScheduler) {
  const std::string faulty = std::string(kFaulty) + "--set schedule.fault=none ";
  EXPECT_EQ(schedule(faulty + "--format csv").text, "0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  const Outcome refused = schedule(faulty + "--set schedule.limit=7 --set schedule.limit=1");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.text, "--scheduler: sched-faulty has room for 1 microbatches, not for 2\n  use schedule.limit 2\n");
  const Outcome bad = schedule(std::string(kFaulty) + "--set schedule.limit=0 --set schedule.limits=3");
  EXPECT_EQ(bad.status, 2);
  EXPECT_EQ(bad.text,
            "--set: schedule.limits is no key of sched-faulty's\n"
            "  with --scheduler, what can be set are its keys in [schedule]: fault, limit\n"
            "--scheduler: sched-faulty lacks schedule.fault (what is wrong with it)\n"
            "  add --set schedule.fault=...\n"
            "--set: schedule.limit = 0 is outside 1..1000\n");
}

TEST(ScheduleVerb, AScheduleThatDoesNotHoldIsAFailureAndNotDrawn) {
  const std::string deadlock = std::string(kFaulty) + "--set schedule.fault=deadlock ";
  const Outcome told = schedule(deadlock, "2>&1 >/dev/null");
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.text, StartsWith("--scheduler: sched-faulty: rank 0, position 1, 0B0: it waits for 1"));
  const TempFolder work;
  const Outcome nothing = schedule(deadlock + "--output " + (work / "drawn").string(), "2>/dev/null");
  EXPECT_EQ(nothing.status, 1);
  EXPECT_EQ(nothing.text, "");
  EXPECT_FALSE(std::filesystem::exists(work / "drawn"));
}

TEST(ScheduleVerb, ManyFaultsAreCounted) {
  const Outcome told = schedule("--scheduler sched-faulty --path " FIXTURES
                                " --pipeline 6 --microbatches 8 --set schedule.fault=missing",
                                "2>&1 >/dev/null");
  EXPECT_EQ(told.status, 1);
  EXPECT_EQ(std::count(told.text.begin(), told.text.end(), '\n'), 21);
  EXPECT_THAT(told.text, HasSubstr("sched-faulty: rank 0: 0B0 is missing, the backward of stage 0"));
  EXPECT_THAT(told.text, testing::EndsWith("\n... and 28 more\n")); // I and W of 48 microbatches
}

TEST(ScheduleVerb, TheCapIsWhatARankMayKeep) {
  const std::string shape = "--scheduler sched-1f1b --pipeline 4 --microbatches 8 ";
  EXPECT_EQ(schedule(shape + "--cap 4").status, 0);
  const Outcome told = schedule(shape + "--cap 3", "2>&1 >/dev/null");
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.text, HasSubstr("--scheduler: sched-1f1b: rank 0, position 6, 0F3: it exceeds the limit of 3 "
                                   "microbatches in flight on a rank, counted per stage\n"));
}

TEST(ScheduleVerb, WhatASchedulerThrowsIsTold) {
  const Outcome refused = schedule(std::string(kFaulty) + "--set schedule.fault=refuse");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, HasSubstr("it does not want to be made"));
  const Outcome failed = schedule(std::string(kFaulty) + "--set schedule.fault=throw");
  EXPECT_EQ(failed.status, 2); // no rows to verify
  EXPECT_THAT(failed.text, HasSubstr(", rows(): "));
  EXPECT_THAT(failed.text, HasSubstr("it lost its rows"));
}

TEST(ScheduleVerb, WhatIsTooLargeIsRefusedBeforeItFillsTheMemory) {
  const Outcome actions = schedule("--scheduler sched-gpipe --pipeline 4096 --microbatches 65536");
  EXPECT_EQ(actions.status, 2);
  EXPECT_EQ(actions.text,
            "p = 4096 x v = 1 x m = 65536 is more than 262144 actions of each kind\n  use smaller sizes\n");
  const Outcome wide = schedule("--scheduler sched-gpipe --pipeline 2400 --microbatches 1");
  EXPECT_EQ(wide.status, 2);
  EXPECT_EQ(
      wide.text,
      "a table of 2400 ranks and 7200 units of time is too large to read\n  use --format csv, or smaller sizes\n");
}

} // namespace
} // namespace triax::test
