// SPDX-License-Identifier: Apache-2.0
// Clauses: each stands where the table says, exists once, and is proved by a check; each check names one.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "triax/conformance/clause.hpp"
#include "triax/conformance/communicator_checks.hpp"
#include "triax/conformance/kernel_checks.hpp"
#include "triax/conformance/model_checks.hpp"
#include "triax/conformance/optimizer_checks.hpp"
#include "triax/conformance/planner_checks.hpp"
#include "triax/conformance/scheduler_checks.hpp"

namespace {

using namespace triax::conformance;
namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// The checks of all kinds.
std::vector<Check> all_checks() {
  std::vector<Check> out = communicator_checks({});
  for (const std::vector<Check>& more :
       {scheduler_checks({}), model_checks({}), kernel_checks({}), optimizer_checks({}), planner_checks({})})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(Clauses, StandWhereTheTableSays) {
  ASSERT_FALSE(clauses().empty());
  for (const Clause& clause : clauses()) {
    const std::vector<std::string> lines = lines_of(fs::path(TRIAX_SOURCE_DIR) / "core/include" / clause.header);
    ASSERT_LE(static_cast<std::size_t>(clause.line), lines.size()) << clause.header;
    const std::string& line = lines[static_cast<std::size_t>(clause.line) - 1];
    EXPECT_NE(line.find(triax::text("[{}] ", clause.id)), std::string::npos) << clause.id << ": " << line;
    const std::string begin = std::string(clause.sentence).substr(0, 30);
    EXPECT_NE(line.find(begin), std::string::npos) << clause.id << ": " << clause.sentence;
    EXPECT_TRUE(std::string(clause.sentence).ends_with('.')) << clause.id << ": " << clause.sentence;
  }
}

TEST(Clauses, OfTheHeadersAreAllInTheTable) {
  std::size_t marked = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TRIAX_SOURCE_DIR) / "core/include/triax"))
    for (const std::string& line : lines_of(entry.path()))
      if (const std::size_t at = line.find("// ["); at != std::string::npos && line.size() > at + 6)
        marked += std::isupper(static_cast<unsigned char>(line[at + 4])) != 0 &&
                  std::isdigit(static_cast<unsigned char>(line[at + 5])) != 0;
  EXPECT_EQ(marked, clauses().size());
}

TEST(Clauses, ExistOnceAndAreNumberedWithoutGaps) {
  std::map<std::string, int> last; // in a header
  std::map<char, std::set<int>> numbers;
  for (const Clause& clause : clauses()) {
    const std::string id = clause.id;
    const int number = std::stoi(id.substr(1));
    EXPECT_TRUE(numbers[id.front()].insert(number).second) << id << " exists twice";
    if (*clause.of != '\0') continue; // a new operation is among those of its group, with the next number
    EXPECT_GT(number, last[clause.header]) << id << " is not in order";
    last[clause.header] = number;
  }
  for (const auto& [letter, all] : numbers)
    EXPECT_EQ(static_cast<std::size_t>(*all.rbegin()), all.size()) << "a number of " << letter << " is missing";
}

TEST(Clauses, AreEachProvedByACheck) {
  std::set<std::string> proved;
  for (const Check& check : all_checks()) proved.insert(check.clause);
  for (const Clause& clause : clauses()) EXPECT_TRUE(proved.contains(clause.id)) << clause.id << " has no check";
}

/// The clause of "AttentionFwd.IsItsFormula" is the comment of struct AttentionFwd.
TEST(Checks, OfOperationsNameTheClauseAtTheirStruct) {
  const std::string end = ".IsItsFormula";
  int operations = 0;
  for (const Check& check : kernel_checks({})) {
    if (!check.name.ends_with(end)) continue;
    ++operations;
    const Clause& clause = find_clause(check.clause);
    const std::vector<std::string> lines = lines_of(fs::path(TRIAX_SOURCE_DIR) / "core/include" / clause.header);
    auto line = static_cast<std::size_t>(clause.line);
    while (line < lines.size() && lines[line].starts_with("///")) ++line;
    EXPECT_EQ(lines.at(line), "struct " + check.name.substr(0, check.name.size() - end.size()) + " {") << check.clause;
  }
  EXPECT_EQ(operations, static_cast<int>(triax::KernelSet::kOps));
}

TEST(Checks, NameAClauseAndHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Check& check : all_checks()) {
    EXPECT_NO_THROW(find_clause(check.clause)) << check.name;
    EXPECT_TRUE(names.insert(check.clause.substr(0, 1) + check.name).second) << check.name << " exists twice";
    EXPECT_NE(check.name.find('.'), std::string::npos) << check.name;
  }
}

TEST(Clauses, ThatDoNotExistAreAnError) {
  EXPECT_THROW(find_clause("C999"), triax::Error);
}

} // namespace
