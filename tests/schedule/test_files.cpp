// Schedules in files, as `triax schedule --file` takes them. corrupted/ has what must be refused, each with all that is
// said of it and the exit status (UPDATE_GOLDEN=1 writes the texts anew); pytorch/ has what PyTorch has written, of
// which a few are refused too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

/// All that is said of a file, and the exit status, are those of NAME.txt.
void expect_refused(const fs::path& folder, const std::string& name) {
  const fs::path flags = folder / (name + ".arguments");
  std::string arguments = text("schedule --file {}.csv {}", name, fs::exists(flags) ? read_file(flags) : "");
  replace_all(arguments, "\n", " ");
  EXPECT_EQ(run(folder, arguments, "2>/dev/null").text, "") << "what is refused is not drawn";
  const Outcome refused = run(folder, arguments, "2>&1 >/dev/null");
  EXPECT_TRUE(refused.status == 1 || refused.status == 2) << refused.status;
  expect_golden(folder / (name + ".txt"), refused.text + text("exit status {}\n", refused.status));
}

/// As we write it: without idle slots.
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

} // namespace
} // namespace triax::test
