// SPDX-License-Identifier: Apache-2.0
// Error messages of refused runs. Every folder next to this file is a case: `triax check run.toml` (or arguments.txt)
// runs in a copy of it, and expected.txt is the complete stderr. Next to the copy are base.toml, a valid run, and its
// data, text.bin; setup.sh makes changes that files in the repository cannot contain. UPDATE_GOLDEN=1 rewrites the
// expected texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <string>

#include "golden/program.hpp"
#include "support/golden.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = GOLDEN_CASES;

std::set<std::string> case_names() {
  std::set<std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCases)) {
    if (entry.is_directory()) out.insert(entry.path().filename().string());
  }
  return out;
}

/// Replaces what depends on the installed plugins and on the machine.
void take_out_what_differs(std::string& text, const fs::path& folder) {
  replace_all(text, TRIAX_BINARY_DIR "/lib/triax/plugins", "{plugins}");
  replace_all(text, folder.string(), "{folder}");
  text = std::regex_replace(text, std::regex("installed (communicators|kernel sets): [^\n]*"), "installed $1: {names}");
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, RefusesInTheseWords) {
  const TempFolder work;
  fs::copy(kCases / GetParam(), work / "case");
  fs::copy(kCases / "base.toml", work.path());
  write_file(work / "text.txt", std::string(1000, 'x'));
  ASSERT_EQ(run(work.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1").status, 0);
  if (fs::exists(work / "case/setup.sh")) {
    const std::string setup = "cd '" + (work / "case").string() + "' && sh -e setup.sh";
    ASSERT_EQ(std::system(setup.c_str()), 0); // NOLINT(cert-env33-c): commands of this folder
  }

  const fs::path arguments = kCases / GetParam() / "arguments.txt";
  std::string line = fs::exists(arguments) ? read_file(arguments) : "check run.toml";
  replace_all(line, "\n", " ");
  const Outcome stdout_of = run(work / "case", line, "2>/dev/null");
  EXPECT_EQ(stdout_of.text, "") << "a refusal has no result";
  Outcome refused = run(work / "case", line, "2>&1 >/dev/null");
  EXPECT_EQ(refused.status, 2);

  take_out_what_differs(refused.text, fs::canonical(work.path()));
  expect_golden(kCases / GetParam() / "expected.txt", refused.text);
}

std::string test_name(const testing::TestParamInfo<std::string>& case_name) {
  std::string name = case_name.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(case_names()), test_name);

} // namespace
} // namespace triax::test
