// SPDX-License-Identifier: Apache-2.0
// Schedule files for `triax schedule --file`. pytorch/ contains files that PyTorch wrote; some are refused, each with
// its complete error text and exit status (UPDATE_GOLDEN=1 rewrites them). tests/cli has other files that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "support/golden.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

const fs::path kPyTorch = SCHEDULE_FILES "/pytorch";

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
  const std::string arguments = text("schedule --file {}.csv", name);
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

class PyTorch : public testing::TestWithParam<std::string> {};

TEST_P(PyTorch, IsAcceptedOrRefusedAsExpected) {
  if (fs::exists(kPyTorch / (GetParam() + ".txt"))) return expect_refused(kPyTorch, GetParam());
  const Outcome csv = run(kPyTorch, text("schedule --format csv --file {}.csv", GetParam()), "2>&1");
  EXPECT_EQ(csv.status, 0);
  EXPECT_EQ(csv.text, without_idle_cells(read_file(kPyTorch / (GetParam() + ".csv"))));
}

INSTANTIATE_TEST_SUITE_P(Files, PyTorch, testing::ValuesIn(files_of(kPyTorch)), test_name);

// The first gradient is received before the sends that lead to it: the cycle has hundreds of actions.
TEST(ScheduleFiles, ALongCycleIsShortened) {
  constexpr int kMicrobatches = 700;
  std::string first = "0F0,0RECV_B0", second, sends, backwards = ",0B0";
  for (int i = 0; i < kMicrobatches; ++i) {
    if (i > 0) first += text(",0F{}", i), backwards += text(",0RECV_B{},0B{}", i, i);
    sends += text(",0SEND_F{}", i);
    second += text("1RECV_F{},1F{},1B{},1SEND_B{},", i, i, i, i);
  }
  const auto end = [](int stage) { return text("{}REDUCE_GRAD,REDUCE_TIED,NORM,{}OPT_STEP\n", stage, stage); };
  const TempFolder work;
  write_file(work / "rows.csv", first + sends + backwards + "," + end(0) + second + end(1));
  const Outcome refused = run(work.path(), "schedule --file rows.csv", "2>&1");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.text,
              testing::ContainsRegex("deadlock \\(a -> b: a waits for b\\): .* -> \\([0-9]+ more\\) -> 0RECV_B0"));
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

/// The actions of the largest schedules fit; larger files are refused before they fill the memory.
TEST(ScheduleFiles, RefuseFilesThatExceedTheLimits) {
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
  EXPECT_EQ(larger.text,
            "rows.csv: is larger than 64 MiB, the limit of a CSV text\n  check that this is the CSV of a schedule\n");
}

/// A pipe is read once its writer opens it.
TEST(ScheduleFiles, MayComeThroughAPipe) {
  const TempFolder work;
  EXPECT_EQ(run(work.path(), "schedule --scheduler sched-1f1b --pipeline 2 --microbatches 2 --format csv", "> rows.csv")
                .status,
            0);
  ASSERT_EQ(::mkfifo((work / "fifo").c_str(), 0600), 0);
  const std::string folder = work.path().string();
  const Outcome piped = run(work.path(), "schedule --file fifo --format csv",
                            "2>&1 & sleep 0.1; cat " + folder + "/rows.csv > " + folder + "/fifo; wait");
  EXPECT_EQ(piped.text, read_file(work / "rows.csv"));
}

} // namespace
} // namespace triax::test
