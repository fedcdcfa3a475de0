// SPDX-License-Identifier: Apache-2.0
// Messages for invalid TOML, by the user's line. The parser's own message appears only where Triax has no better one.
#include <algorithm>
#include <cstdio>

#include "config/workspace.hpp"

namespace triax::config {
namespace {

using testing::HasSubstr;

/// The single error for a file with this text.
std::string error_of(const std::string& text) {
  Workspace space;
  space.write("run.toml", text);
  const std::vector<std::string> all = texts(space.load_file("run.toml"));
  EXPECT_EQ(all.size(), 1u) << text;
  return all.empty() ? std::string() : all.front();
}

TEST(TomlError, ExplainsAnUnclosedString) {
  const std::string closed = "run.toml:2:10: not valid TOML: the string of plugin is not closed\n";
  EXPECT_EQ(error_of("[model]\nplugin = \"gpt\nlayers = 2\n"), closed + "  write plugin = \"gpt\"");
  EXPECT_EQ(error_of("[model]\nplugin = \"gpt"), closed + "  write plugin = \"gpt\"");
  EXPECT_EQ(error_of("[model]\nplugin = 'gpt\n"), closed + "  write plugin = 'gpt'");
  EXPECT_EQ(error_of("[model]\nplugin = \"a\\\"\n"), closed + "  write plugin = \"a\\\"\"");
}

TEST(TomlError, ExplainsAnInvalidEscape) {
  EXPECT_EQ(error_of("[data]\npath = \"C:\\data\"\n"),
            "run.toml:2:8: not valid TOML: invalid escape in the string of path\n"
            "  write path = 'C:\\data', where a \\ is a \\");
  EXPECT_THAT(error_of("[data]\npath = \"it's\\ a\"\n"), HasSubstr("\n  write each \\ twice"));
}

TEST(TomlError, ExplainsDuplicateTablesAndKeys) {
  EXPECT_EQ(error_of("[train]\nsteps = 1\n[log]\nevery = 1\n[train]\nseed = 1\n"),
            "run.toml:5:1: not valid TOML: [train] is written twice, first in line 1\n  write its keys below line 1");
  EXPECT_EQ(error_of("[log]\nevery = 1\n[eval]\nevery = 1\nbatches = 2\n  every = 3\n"),
            "run.toml:6:3: not valid TOML: every is written twice, first in line 4\n"
            "  remove one of the two");
  EXPECT_THAT(error_of("train = 1\n[train]\nsteps = 1\n"), HasSubstr("cannot redefine"));
}

TEST(TomlError, ExplainsDuplicateNamesInQuotes) {
  const std::string second = "  remove one of the two";
  EXPECT_EQ(error_of("[log]\n\"every\" = 1\n\"every\" = 2\n"),
            "run.toml:3:1: not valid TOML: \"every\" is written twice, first in line 2\n" + second);
  EXPECT_EQ(error_of("[log]\n'a = b' = 1\n \"a = b\" = 2\n"),
            "run.toml:3:2: not valid TOML: \"a = b\" is written twice, first in line 2\n" + second);
  EXPECT_EQ(error_of("[log]\nevery = 1\n'every' = 2\n"),
            "run.toml:3:1: not valid TOML: 'every' is written twice, first in line 2\n" + second);
  EXPECT_EQ(error_of("[\"log\"]\nevery = 1\n[log]\nlevel = 2\n"),
            "run.toml:3:1: not valid TOML: [log] is written twice, first in line 1\n  write its keys below line 1");
  EXPECT_EQ(error_of("[log]\nx = {\"a b\" = 1, \"a b\" = 2}\n"),
            "run.toml:2:25: not valid TOML: a key is written twice\n  it reads: x = {\"a b\" = 1, \"a b\" = 2}");
  EXPECT_EQ(error_of("[log]\n\"every\" = yes\n"),
            "run.toml:2:11: not valid TOML: invalid value: yes\n  write \"every\" = true");
}

TEST(TomlError, CutsLongInput) {
  const std::string most(200, 'x'), more(1'000'000, 'x');
  EXPECT_EQ(error_of("[log]\n" + more + " = 1\n" + more + " = 2\n"),
            "run.toml:3:1: not valid TOML: " + most + "...\n  remove one of the two");
  EXPECT_THAT(error_of("[log]\nlevel = \"" + more).size(), testing::Lt(600u));
  EXPECT_THAT(error_of("[log]\nlevel = \"a\" " + more).size(), testing::Lt(600u));
  EXPECT_EQ(error_of("include = [\"" + more + "\"]\n"),
            "run.toml:1:12: a string of 1000000 bytes; the limit is 4096: \"" + std::string(40, 'x') +
                "...\"\n  check that this is the TOML of a run");
}

TEST(TomlError, ExplainsInvalidValues) {
  const auto of = [](const std::string& value) { return error_of("[train]\nsteps = " + value + "\n"); };
  const std::string at = "run.toml:2:9: not valid TOML: ";
  EXPECT_EQ(of("True"), at + "invalid value: True\n"
                             "  write steps = true");
  EXPECT_EQ(of("off  # not now"), at + "invalid value: off\n"
                                       "  write steps = false");
  EXPECT_EQ(of("None"), at + "invalid value: None\n"
                             "  leave steps out");
  EXPECT_EQ(of("many"), at + "invalid value: many\n"
                             "  a string has quotes: steps = \"many\"");
  for (const std::string number : {"50k", "010", ".5", "1.e3", "1_000_", "1e999", "0x"})
    EXPECT_EQ(of(number), at + "invalid number: " + number + "\n  write numbers as 50, 1_000, 0.001, 1e-3");
  EXPECT_EQ(of("99999999999999999999"), at + "99999999999999999999 does not fit into 64 bits\n"
                                             "  the largest integer is 9223372036854775807");
}

TEST(TomlError, ExplainsALineWithoutKeyAndValue) {
  EXPECT_EQ(error_of("[train]\nsteps: 5  # as in YAML\n"),
            "run.toml:2:6: not valid TOML: steps needs = before its value, not :\n"
            "  write steps = 5");
  EXPECT_EQ(error_of("[train]\nsteps\n"),
            "run.toml:2:1: not valid TOML: steps has no value\n  write steps = VALUE, or remove the line");
  EXPECT_EQ(error_of("[train]\nsteps = 5 10\n"),
            "run.toml:2:11: not valid TOML: the value 5 is followed by 10\n"
            "  a line has one key and one value; a comment begins with #");
  EXPECT_THAT(error_of("[train]\nsteps = \"ü\" // 10\n"),
              HasSubstr("run.toml:2:13: not valid TOML: the value \"ü\" is "));
}

TEST(TomlError, ExplainsUnclosedBrackets) {
  EXPECT_EQ(error_of("[train\nsteps = 5\n"),
            "run.toml:1:1: not valid TOML: the name of a table is not closed\n  write [train]");
  const std::string list =
      "run.toml:1:11: not valid TOML: the list of include is not closed\n"
      "  write ] after its last item";
  EXPECT_EQ(error_of("include = [\"a.toml\"\n[train]\nsteps = 5\n"), list);
  EXPECT_EQ(error_of("include = [\n\"a.toml\",\n\nsteps = 5\n"), list);
  EXPECT_EQ(error_of("include = [\"a.toml\""), list);
}

TEST(TomlError, ShowsTheLineOfAnyOtherError) {
  const std::string shown = error_of("[parallel]\nsplit = [1 2]\n");
  EXPECT_THAT(shown, HasSubstr("run.toml:2:12: not valid TOML: "));
  EXPECT_THAT(shown, HasSubstr("\n  it reads: split = [1 2]"));
  EXPECT_THAT(error_of("[parallel]\nsplit = [\n1\n2\n]\n"), HasSubstr("\n  it reads: 2"));
  EXPECT_THAT(error_of("[a b]\n"), HasSubstr("\n  it reads: [a b]"));
}

TEST(TomlError, ReportsInvalidUtf8) {
  EXPECT_EQ(error_of("[train]\n# \xC3\xBC and \xFC\n"),
            "run.toml:2:9: not valid TOML: invalid UTF-8\n"
            "  save the file as UTF-8");
  EXPECT_EQ(error_of(std::string("\xFF\xFE[\0", 4)),
            "run.toml:1:1: not valid TOML: the file is UTF-16, but TOML is UTF-8\n  save the file as UTF-8");
}

/// After any cut or replacement, the position in the message exists in the file.
TEST(TomlError, ReportsNoHintForALineThatDoesNotExist) {
  const std::string good =
      "include = [\"a\", 'b']\n[model]\nplugin = \"x\\n\"\nlr = 1e-3\ns = [1, 2] # c\n\n[a.b]\nt = { u = 1 }\n";
  Workspace space;
  int faults = 0;
  const auto look_at = [&](const std::string& text) {
    space.write("run.toml", text);
    for (const std::string& refusal : texts(space.load_file("run.toml"))) {
      int line = 0, column = 0;
      if (std::sscanf(refusal.c_str(), "run.toml:%d:%d: not valid TOML: ", &line, &column) != 2) continue;
      if (refusal.find("not valid TOML") == std::string::npos) continue;
      ++faults;
      EXPECT_GE(line, 1) << text;
      EXPECT_LE(line, 1 + std::count(text.begin(), text.end(), '\n')) << text;
      EXPECT_GE(column, 1) << text;
      EXPECT_LE(column, 40) << text;
    }
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char letter : {'"', '[', '=', '\\', '\0', '\xFC'}) {
      std::string bad = good;
      bad[i] = letter;
      look_at(bad);
      look_at(good.substr(0, i) + letter);
    }
  }
  EXPECT_GT(faults, 300);
}

} // namespace
} // namespace triax::config
