// SPDX-License-Identifier: Apache-2.0
// The log of a run: lines, levels and files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "report/run_log.hpp"
#include "support/temp_folder.hpp"
#include "triax/error.hpp"

namespace triax::report {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using namespace triax::test;

TEST(RunLog, WritesTimeLevelRankAndLineToStderrAndFile) {
  const TempFolder folder;
  ::testing::internal::CaptureStderr();
  {
    const auto log = make_run_log(LogLevel::info, folder / "rank-2.log", 2);
    log->info("loss {} at {}%v {}", 0.5, "step", "{}");
    log->debug("unheard");
    log->error("lost\n  hint");
  }
  const std::string expected =
      "....-..-.. ..:..:..\\.... info rank 2: loss 0\\.5 at step%v \\{\\}\n"
      "....-..-.. ..:..:..\\.... error rank 2: lost\n  hint\n";
  const std::string on_stderr = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(on_stderr, MatchesRegex(expected));
  EXPECT_EQ(read_file(folder / "rank-2.log"), on_stderr);
}

TEST(RunLog, ALineIsInTheFileAtOnce) {
  const TempFolder folder;
  ::testing::internal::CaptureStderr();
  const auto log = make_run_log(LogLevel::debug, folder / "log", 0);
  log->debug("one");
  EXPECT_THAT(read_file(folder / "log"), HasSubstr("debug rank 0: one\n"));
  ::testing::internal::GetCapturedStderr();
}

TEST(RunLog, StderrMayHearLessThanTheFile) {
  const TempFolder folder;
  ::testing::internal::CaptureStderr();
  const auto log = make_run_log(LogLevel::debug, folder / "log", 3, {LogLevel::warn});
  log->debug("one");
  log->warn("two");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), MatchesRegex(".* warning rank 3: two\n"));
  EXPECT_THAT(read_file(folder / "log"), MatchesRegex(".* debug rank 3: one\n.* warning rank 3: two\n"));
}

/// As a terminal that Ctrl-S halts, or a pipe to a program that is stuck.
TEST(RunLog, AStderrThatTakesNoOutputDoesNotStopTheRun) {
  const TempFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK); // also of stderr, while the pipe is filled
  const std::string filling(4096, '-');
  while (::write(ends[1], filling.data(), filling.size()) > 0) {
  }
  ::fcntl(ends[1], F_SETFL, 0);
  const auto log = make_run_log(LogLevel::info, folder / "log", 0);
  log->info("one");
  log->info("two");
  std::string read(std::size_t{1} << 20, ' ');
  EXPECT_GT(::read(ends[0], read.data(), read.size()), 4096);
  log->info("three");
  const ssize_t got = ::read(ends[0], read.data(), read.size());
  ::dup2(before, STDERR_FILENO);
  for (const int one : {before, ends[0], ends[1]}) ::close(one);
  read.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  EXPECT_THAT(read, MatchesRegex("2 lines of the log are not here, because stderr took no output\n.*info.*: three\n"));
  EXPECT_THAT(read_file(folder / "log"), MatchesRegex(".*: one\n.*: two\n.*: three\n"));
}

TEST(RunLog, ARestartedRunAppends) {
  const TempFolder folder;
  ::testing::internal::CaptureStderr();
  make_run_log(LogLevel::info, folder / "log", 0)->info("first");
  make_run_log(LogLevel::info, folder / "log", 0)->info("second");
  ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(read_file(folder / "log"), MatchesRegex(".*first\n.*second\n"));
}

TEST(RunLog, IsEnabledFromItsLevelOn) {
  const LogLevel levels[] = {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error};
  for (const LogLevel set : levels) {
    const auto log = make_run_log(set, {}, 0);
    for (const LogLevel asked : levels) EXPECT_EQ(log->enabled(asked), asked >= set);
  }
}

TEST(RunLog, ThreadsDoNotMixTheirLines) {
  const TempFolder folder;
  ::testing::internal::CaptureStderr();
  {
    const auto log = make_run_log(LogLevel::info, folder / "log", 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&log] {
        for (int line = 0; line < 50; ++line) log->info("{}", "a line of some length");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ::testing::internal::GetCapturedStderr();
  std::istringstream lines(read_file(folder / "log"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_THAT(line, ::testing::EndsWith("info rank 0: a line of some length"));
  EXPECT_EQ(count, 200);
}

TEST(RunLog, ALineDoesNotSteerTheTerminal) {
  const TempFolder folder;
  ::testing::internal::CaptureStderr();
  make_run_log(LogLevel::info, folder / "log", 0)->info("a {} name\n  hint", "\x1b[2Jodd\r");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("rank 0: a \\u001B[2Jodd\\u000D name\n  hint\n"));
}

TEST(RunLog, NamesTheFileThatCannotBeOpened) {
  const TempFolder folder;
  write_file(folder / "file", "");
  try {
    make_run_log(LogLevel::info, folder.path() / "file" / "log", 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), (folder.path() / "file" / "log").string() +
                                ": the log cannot be opened: Not a directory\n  choose another folder with run.dir");
  }
}

TEST(RunLog, AFileThatTakesNothingIsReportedOnceAndCounted) {
  ::testing::internal::CaptureStderr();
  const auto log = make_run_log(LogLevel::info, "/dev/full", 0, {LogLevel::error});
  log->info("one");
  log->info("two");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "log /dev/full: a line cannot be written: No space left on device\n"
            "  free space there: the run continues, and writes later lines as soon as it can\n");
  EXPECT_EQ(lost_lines(*log), 2);
  EXPECT_EQ(lost_lines(null_log()), 0);
}

TEST(ParseLevel, KnowsFiveAndNamesThem) {
  EXPECT_EQ(parse_level("trace"), LogLevel::trace);
  EXPECT_EQ(parse_level("warn"), LogLevel::warn);
  EXPECT_EQ(parse_level("error"), LogLevel::error);
  try {
    parse_level("loud");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "log.level: invalid log level \"loud\"\n"
                 "  use one of trace, debug, info, warn, error");
  }
}

} // namespace
} // namespace triax::report
