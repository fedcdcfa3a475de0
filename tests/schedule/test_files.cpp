// SPDX-License-Identifier: Apache-2.0
// Schedule files for `triax schedule --file`. corrupted/ contains invalid files, each with its complete error text and
// exit status (UPDATE_GOLDEN=1 rewrites them). pytorch/ contains files that PyTorch wrote; some of them are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "golden/program.hpp"
#include "support/golden.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

const fs::path kCorrupted = SCHEDULE_FILES "/corrupted", kPyTorch = SCHEDULE_FILES "/pytorch";

std::set<std::string> files_of(const fs::path& folder) {
  std::set<std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".csv") out.insert(entry.path().stem().string());
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& file) {
  std::string name = file.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Compares the error text and exit status with NAME.txt.
void expect_refused(const fs::path& folder, const std::string& name) {
  const fs::path flags = folder / (name + ".arguments");
  std::string arguments = text("schedule --file {}.csv {}", name, fs::exists(flags) ? read_file(flags) : "");
  replace_all(arguments, "\n", " ");
  EXPECT_EQ(run(folder, arguments, "2>/dev/null").text, "") << "what is refused is not drawn";
  const Outcome refused = run(folder, arguments, "2>&1 >/dev/null");
  EXPECT_TRUE(refused.status == 1 || refused.status == 2) << refused.status;
  expect_golden(folder / (name + ".txt"), refused.text + text("exit status {}\n", refused.status));
}

/// Removes idle cells, as to_csv() does not write them.
std::string without_idle_cells(std::string csv) {
  replace_all(csv, "\r", "");
  while (csv.find(",,") != std::string::npos) replace_all(csv, ",,", ",");
  replace_all(csv, ",\n", "\n");
  replace_all(csv, "\n,", "\n");
  return csv.starts_with(',') ? csv.substr(1) : csv;
}

class Corrupted : public testing::TestWithParam<std::string> {};

TEST_P(Corrupted, IsRefusedForTheRightReason) {
  expect_refused(kCorrupted, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Files, Corrupted, testing::ValuesIn(files_of(kCorrupted)), test_name);

class PyTorch : public testing::TestWithParam<std::string> {};

TEST_P(PyTorch, IsTakenOrRefusedInWords) {
  if (fs::exists(kPyTorch / (GetParam() + ".txt"))) return expect_refused(kPyTorch, GetParam());
  const Outcome csv = run(kPyTorch, text("schedule --format csv --file {}.csv", GetParam()), "2>&1");
  EXPECT_EQ(csv.status, 0);
  EXPECT_EQ(csv.text, without_idle_cells(read_file(kPyTorch / (GetParam() + ".csv"))));
}

INSTANTIATE_TEST_SUITE_P(Files, PyTorch, testing::ValuesIn(files_of(kPyTorch)), test_name);

// The first gradient is received before the sends that lead to it: the cycle has hundreds of actions.
TEST(ScheduleFiles, ALongCircleIsToldInFewWords) {
  constexpr int kMicrobatches = 700;
  std::string first = "0F0,0RECV_B0", second, sends, backwards = ",0B0";
  for (int i = 0; i < kMicrobatches; ++i) {
    if (i > 0) first += text(",0F{}", i), backwards += text(",0RECV_B{},0B{}", i, i);
    sends += text(",0SEND_F{}", i);
    second += text("1RECV_F{},1F{},1B{},1SEND_B{},", i, i, i, i);
  }
  const char* const end = "REDUCE_TIED,NORM,OPT_STEP\n";
  const TempFolder work;
  write_file(work / "rows.csv", first + sends + backwards + ",0REDUCE_GRAD," + end + second + "1REDUCE_GRAD," + end);
  const Outcome refused = run(work.path(), "schedule --file rows.csv", "2>&1");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text,
              testing::AllOf(testing::HasSubstr("and so on through "), testing::HasSubstr("wait indefinitely")));
  EXPECT_LT(refused.text.size(), 2000u);
}

TEST(ScheduleFiles, TheLoweredFormIsWrittenAndReadAgain) {
  const TempFolder work;
  const Outcome written =
      run(work.path(), "schedule --scheduler sched-1f1b --pipeline 2 --microbatches 2 --format csv --lowered", "2>&1");
  EXPECT_THAT(read_file(TRIAX_SOURCE_DIR "/docs/schedules.md"), testing::HasSubstr("```\n" + written.text + "```\n"));
  write_file(work / "rows.csv", written.text);
  EXPECT_EQ(run(work.path(), "schedule --file rows.csv --format csv --lowered", "2>&1").text, written.text);
  const Outcome table = run(work.path(), "schedule --file rows.csv", "2>&1");
  EXPECT_EQ(table.status, 0);
  EXPECT_THAT(table.text, testing::HasSubstr("rank 1    |F0|B0   |F1|B1   |\n"));
}

TEST(ScheduleFiles, NeitherTheirNameNorACellReachesATerminalRaw) {
  const TempFolder work;
  write_file(work / "a\x1b[2J.csv", "0F0,0B0\n");
  const std::string times = " --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0";
  for (const std::string& verb : {std::string("schedule "), "simulate" + times + " "}) {
    const Outcome told = run(work.path(), verb + "--file 'a\x1b[2J.csv'", "2>&1");
    EXPECT_EQ(told.status, 0) << told.text;
    EXPECT_THAT(told.text, testing::StartsWith("a\\u001B[2J.csv: p = 1"));
  }
  write_file(work / "rows.csv",
             "0F0\x7f\xc2\x9b"
             "31m,0B0\n");
  const Outcome refused = run(work.path(), "schedule --file rows.csv", "2>&1");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.text, testing::HasSubstr("rows.csv:1:1: \"0F0\\u007F\\u009B31m\" is not an action"));
}

/// A file takes as long as the scheduler that created it.
TEST(ScheduleFiles, AreSimulated) {
  const TempFolder work;
  const std::string scheduler = "--scheduler sched-interleaved --pipeline 4 --microbatches 8 --chunks 2 ";
  const std::string times = " --forward-ms 3 --input-ms 2 --weight-ms 1.5 --link-ms 0.3 --json";
  const std::string wanted = run(work.path(), "simulate " + scheduler + times, "2>&1").text;
  EXPECT_THAT(wanted, testing::HasSubstr("makespan_ms"));
  for (const char* form : {"", "--lowered"}) {
    ASSERT_EQ(run(work.path(), text("schedule {} --format csv --output rows.csv {}", scheduler, form), "2>&1").text,
              "");
    EXPECT_EQ(run(work.path(), "simulate --file rows.csv" + times, "2>&1").text, wanted);
  }
}

/// The actions of the largest schedules fit; larger files are refused before they fill the memory.
TEST(ScheduleFiles, AreNoLargerThanSchedules) {
  const TempFolder work;
  std::string row;
  for (int microbatch = 0; microbatch <= 1 << 18; ++microbatch) row += text("0F{},0B{},", microbatch, microbatch);
  write_file(work / "rows.csv", row);
  const Outcome large = run(work.path(), "schedule --file rows.csv --format csv", "2>&1");
  EXPECT_EQ(large.status, 2);
  EXPECT_EQ(large.text, "p = 1 x v = 1 x m = 262145 is more than 262144 actions of each kind\n  use smaller sizes\n");
  fs::resize_file(work / "rows.csv", std::uintmax_t{65} << 20);
  const Outcome larger = run(work.path(), "schedule --file rows.csv --format csv", "2>&1");
  EXPECT_EQ(larger.status, 2);
  EXPECT_EQ(larger.text, "rows.csv: is larger than 64 MiB, the limit of a schedule\n");
}

} // namespace
} // namespace triax::test
