// SPDX-License-Identifier: Apache-2.0
// TOML that is nested too deeply is refused before it is parsed, wherever TOML is read.
#include "config/workspace.hpp"
#include "plugin/toml_nesting.hpp"

namespace triax::config {
namespace {

using plugin::find_deep_nesting;
using plugin::kMaxTomlNesting;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

/// "LINE:COLUMN LEVELS", or empty.
std::string found(const std::string& toml) {
  const auto deep = find_deep_nesting(toml);
  return deep ? text("{}:{} {}", deep->line, deep->column, deep->levels) : std::string();
}

TEST(TomlNesting, CountsTablesKeysListsAndInlineTables) {
  EXPECT_EQ(found("\n  " + repeated("a.", 39) + "a = 1"), "2:3 40");
  EXPECT_EQ(found("x = 1\n[" + repeated("a.", 39) + "a]\n"), "2:1 40");
  EXPECT_EQ(found("[[" + repeated("'a' . ", 39) + "\"a\"]]\n"), "1:1 40");
  EXPECT_EQ(found("a = " + repeated("[", 39) + repeated("]", 39)), "1:1 40");
  EXPECT_EQ(found("a = " + repeated("[\n#]\n", 39)), "1:1 40");
  EXPECT_EQ(found(repeated("a = {", 40)), "1:1 80");
  EXPECT_EQ(found("[" + repeated("a.", 19) + "a]\nü = 1\n" + repeated("b.", 19) + "b = 1"), "3:1 40");
  EXPECT_EQ(found("x = [{a = 1}, {" + repeated("b.", 39) + "b = 1}]"), "1:1 43");
  EXPECT_EQ(found("\xEF\xBB\xBF[" + repeated("a.", 39) + "a]"), "1:2 40");
}

TEST(TomlNesting, AcceptsNestingWithinTheLimit) {
  EXPECT_EQ(found(repeated("a.", kMaxTomlNesting - 1) + "a = 1"), "");
  EXPECT_EQ(found("a = " + repeated("[", kMaxTomlNesting - 1)), "");
  EXPECT_EQ(found("a = [" + repeated("[1], ", 100) + "]\nb = {" + repeated("c = {d = 1}, ", 100) + "}"), "");
  EXPECT_EQ(found(repeated("[a.b]\nc.d = [[1]]\n", 100)), "");
}

TEST(TomlNesting, StringsAndCommentsAreNotNested) {
  const std::string deep = repeated("[.{", 40);
  for (const std::string& quoted : std::vector<std::string>{"\"" + deep + "\\\"" + deep + "\"", "'" + deep + "\\'",
                                                            "'''" + deep + "\n''" + deep + "'''''",
                                                            "\"\"\"" + deep + "\\\"\"\"" + deep + "\n\"\"\"\"\""}) {
    EXPECT_EQ(found("a = " + quoted + " #" + deep + "\n"), "") << quoted;
    EXPECT_EQ(found("a = [" + quoted + ", #" + deep + "\n" + quoted + "]\n"), "") << quoted;
    EXPECT_EQ(found("a = " + quoted + "\nb = " + repeated("[", 40)).substr(0, 3),
              quoted.front() == quoted[1] ? "3:1" : "2:1");
  }
  EXPECT_EQ(found("\"" + repeated("a.", 100) + "\" = 1"), "");
}

/// The parser reports what is wrong in invalid TOML.
TEST(TomlNesting, TextsThatAreNotTomlAreLeftToTheParser) {
  for (const std::string& toml :
       {repeated(".", 100), repeated("a b.", 100), repeated("]", 100), std::string("a = \"\\"), std::string("'"),
        std::string("["), std::string("a"), std::string("a ="), std::string("a = {"), std::string("a = \"\"\"\\"),
        std::string("a = [1,"), std::string("a = {b")})
    EXPECT_EQ(found(toml), "") << toml;
}

TEST(TomlNesting, AFileOfAnyDepthIsRefusedWithItsLocation) {
  Workspace space;
  const std::string refused = "levels deep; the limit is 32\n  each part of a dotted name, ";
  for (const std::string& deep :
       std::vector<std::string>{repeated("a.", 20000) + "a = 1\n", "[" + repeated("a.", 50000) + "a]\n",
                                "a = " + repeated("[", 1000000) + "\n", repeated("a = {", 1000000) + "\n",
                                repeated("a = {" + repeated("b.", 20), 1000) + "\n"}) {
    space.write("base.toml", "x = 1\n" + deep);
    const std::vector<std::string> errors = texts(space.load("include = [\"base.toml\"]\n"));
    ASSERT_THAT(errors, SizeIs(1));
    EXPECT_THAT(errors[0], testing::StartsWith("base.toml:2:1: nested "));
    EXPECT_THAT(errors[0], HasSubstr(refused));
  }
}

TEST(TomlNesting, AFlagOfAnyDepthIsRefused) {
  Workspace space;
  EXPECT_THAT(texts(space.load({}, {{"parallel.split", repeated("[", 100000)}})),
              ElementsAre(HasSubstr("--set: parallel.split is nested 100001 levels deep; the limit is 32")));
  EXPECT_THAT(texts(space.load({}, {{"train.steps", "{" + repeated("a.", 50000) + "a = 1}"}})),
              ElementsAre(HasSubstr("train.steps is nested 50003 levels deep")));
  EXPECT_THAT(texts(space.load({}, {{repeated("a.", 50000) + "a", "1"}})), SizeIs(1)); // no such table exists
}

TEST(TomlNesting, AChainOfIncludesIsBounded) {
  Workspace space;
  for (int level = 0; level < 5000; ++level)
    space.write(text("{}.toml", level), text("include = [\"{}.toml\"]\n", level + 1));
  const std::vector<std::string> errors = texts(space.load("include = [\"0.toml\"]\n"));
  EXPECT_THAT(errors, ElementsAre(HasSubstr("99.toml:1:12: includes are nested more than 100 files deep")));
}

/// Long lines are not deep.
TEST(TomlNesting, LongLinesAreRead) {
  Workspace space;
  space.tables["parallel"] = "split = [" + repeated("1, ", 300000) + "1]\nchunks = 1\n";
  EXPECT_THAT(texts(space.load()), ElementsAre(HasSubstr("parallel.split lists 300001 stages")));
  space.tables["parallel"] = "# " + std::string(4 << 20, 'x') + "\n";
  EXPECT_THAT(texts(space.load()), IsEmpty());
}

} // namespace
} // namespace triax::config
