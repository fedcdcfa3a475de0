// SPDX-License-Identifier: Apache-2.0
// triax schedule: how files are replaced, and what the documentation shows. tests/cli has transcripts of the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "schedule/schedule_command.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

TEST(ScheduleVerb, DrawsATableThatFitsAPage) {
  const Outcome outcome = schedule("--scheduler sched-1f1b --pipeline 4 --microbatches 8");
  std::istringstream lines(outcome.text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(ScheduleVerb, TheDocumentedDrawingsAreCurrent) {
  for (const char* scheduler : {"sched-1f1b", "sched-zb-h1"})
    EXPECT_THAT(read_file(TRIAX_SOURCE_DIR "/docs/schedules.md"),
                HasSubstr(schedule(text("--scheduler {} --pipeline 4 --microbatches 8", scheduler)).text));
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

} // namespace
} // namespace triax::test
