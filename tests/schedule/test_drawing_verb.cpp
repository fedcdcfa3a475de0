// SPDX-License-Identifier: Apache-2.0
// triax schedule --format svg, json and trace, and coloured tables. tests/cli has transcripts of the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "schedule/schedule_command.hpp"
#include "support/golden.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

const std::filesystem::path kDocs = TRIAX_SOURCE_DIR "/docs";
const char* const kShape = "--scheduler sched-zb-h1 --pipeline 3 --microbatches 6 ";
const char* const kTimes = "--forward-ms 18.522 --input-ms 18.086 --weight-ms 9.337 --link-ms 0.601 ";

int status_of(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Figure {
  std::string arguments; // arguments of triax, without --output
  std::filesystem::path file;
};

/// The drawing commands that docs/schedules.md contains.
std::vector<Figure> documented_figures() {
  const std::string verb = "build/release/bin/triax ", output = " --output docs/";
  std::vector<Figure> out;
  std::istringstream lines(read_file(kDocs / "schedules.md"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(output);
    if (line.starts_with(verb) && at != std::string::npos)
      out.push_back({line.substr(verb.size(), at - verb.size()), line.substr(at + output.size())});
  }
  return out;
}

TEST(Figures, EqualTheDrawingsOfTheDocumentedCommands) {
  const TempFolder work;
  std::set<std::string> drawn;
  for (const Figure& figure : documented_figures()) {
    const Outcome drawing = run(work.path(), figure.arguments + " --output drawn.svg", "2>&1");
    EXPECT_EQ(drawing.status, 0) << drawing.text;
    expect_golden(kDocs / figure.file, read_file(work / "drawn.svg"));
    EXPECT_TRUE(drawn.insert(figure.file.filename().string()).second) << figure.file << " is drawn twice";
    EXPECT_THAT(read_file(kDocs / "schedules.md"), HasSubstr("](" + figure.file.string() + ")"));
  }
  std::set<std::string> kept;
  for (const auto& entry : std::filesystem::directory_iterator(kDocs / "figures"))
    kept.insert(entry.path().filename().string());
  EXPECT_EQ(drawn, kept);
}

TEST(Figures, AreXmlThatStandsAlone) {
  const TempFolder work;
  write_file(work / "check.py",
             "import sys, xml.dom.minidom as dom\n"
             "for file in sys.argv[1:]:\n"
             "  root = dom.parse(file).documentElement\n"
             "  assert root.tagName == 'svg' and root.namespaceURI == 'http://www.w3.org/2000/svg'\n"
             "  for element in root.getElementsByTagName('*'):\n"
             "    assert element.tagName in ('g', 'path', 'rect', 'text', 'title'), element.tagName\n"
             "    assert not any('href' in key or 'url' in value\n"
             "                   for key, value in element.attributes.items())\n");
  EXPECT_EQ(status_of(text("python3 {} {}/figures/*.svg", work / "check.py", kDocs)), 0);
}

TEST(ScheduleDrawing, OfTheSameScheduleIsTheSameBytes) {
  for (const char* format : {"svg", "json", "trace"})
    EXPECT_EQ(schedule(text("{}{}--format {}", kShape, kTimes, format)).text,
              schedule(text("{}{}--format {}", kShape, kTimes, format)).text);
}

TEST(ScheduleDrawing, HasTheSimulatorsTimes) {
  const Json drawing = Json::parse(schedule(text("{}{}--format json", kShape, kTimes)).text);
  const Json simulated = Json::parse(run(".", text("simulate {}{}--json", kShape, kTimes), "2>&1").text);
  EXPECT_EQ(drawing["unit"], "ms");
  EXPECT_EQ(drawing["schedule"], "sched-zb-h1");
  EXPECT_NEAR(drawing["active"], simulated["active_ms"], 1e-9);
  EXPECT_NEAR(drawing["bubble_rate"], simulated["bubble_rate"], 1e-12);
  const Json& first = drawing["ranks"][1][0];
  EXPECT_EQ(first["action"], "1F0");
  EXPECT_NEAR(first["start"], 18.522 + 0.601, 1e-12);
  EXPECT_NEAR(first["end"], 18.522 + 0.601 + 18.522, 1e-12);
}

TEST(ScheduleDrawing, CountsSlotsWithoutTimes) {
  const Json drawing = Json::parse(schedule("--scheduler sched-1f1b --pipeline 2 --microbatches 2 --format json").text);
  EXPECT_EQ(drawing["unit"], "pass");
  const Json& last = drawing["ranks"][0][3];
  EXPECT_EQ(last["action"], "0B1");
  EXPECT_EQ(last["start"], 7);
  EXPECT_EQ(last["end"], 9);
}

TEST(ScheduleDrawing, LinksMayBeLeftOut) {
  const Json drawing =
      Json::parse(schedule(text("{}--format json --forward-ms 2 --input-ms 1 --weight-ms 1", kShape)).text);
  EXPECT_EQ(drawing["ranks"][1][0]["start"], 2);
}

TEST(ScheduleDrawing, ATraceHasEveryPassAndEveryTransfer) {
  const Json trace = Json::parse(schedule(text("{}{}--format trace", kShape, kTimes)).text);
  int passes = 0, arrows = 0;
  for (const Json& event : trace["traceEvents"]) {
    passes += event["ph"] == "X";
    arrows += event["ph"] == "s";
  }
  EXPECT_EQ(passes, 3 * 6 * 3);
  EXPECT_EQ(arrows, 2 * 2 * 6);
}

/// Output of triax schedule on a pseudoterminal.
std::string on_a_terminal(const TempFolder& work, const std::string& environment, const std::string& arguments) {
  write_file(work / "terminal.py", "import pty, sys\nsys.exit(pty.spawn(sys.argv[1:]) >> 8)\n");
  EXPECT_EQ(status_of(text("{} python3 {} " TRIAX_BINARY_DIR "/bin/triax schedule {} > {} < /dev/null", environment,
                           work / "terminal.py", arguments, work / "seen")),
            0);
  return read_file(work / "seen");
}

TEST(ScheduleDrawing, ATableHasColoursOnATerminalAlone) {
  const TempFolder work;
  const std::string table = std::string(kShape) + "--format table";
  const std::string colours = "\x1b[38;5;";
  EXPECT_THAT(on_a_terminal(work, "TERM=xterm NO_COLOR=", table), HasSubstr(colours));
  EXPECT_THAT(on_a_terminal(work, "TERM=xterm NO_COLOR=1", table), Not(HasSubstr(colours)));
  EXPECT_THAT(on_a_terminal(work, "TERM=dumb NO_COLOR=", table), Not(HasSubstr(colours)));
  EXPECT_THAT(schedule(table).text, Not(HasSubstr(colours)));
  on_a_terminal(work, "TERM=xterm NO_COLOR=", table + " --output " + (work / "table.txt").string());
  EXPECT_EQ(read_file(work / "table.txt"), schedule(table).text);
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size() - line.ends_with('\r'));
  return longest;
}

TEST(ScheduleDrawing, ATableFitsItsTerminalAndIsCompleteInFiles) {
  const TempFolder work;
  const std::string shape = "--scheduler sched-1f1b --pipeline 4 --microbatches 64 ";
  const std::string seen = on_a_terminal(work, "TERM=xterm NO_COLOR=1", shape); // 80 columns
  EXPECT_LE(longest_line(seen), 80u);
  EXPECT_THAT(seen, HasSubstr("folded to 80 columns: --output FILE writes it whole"));
  EXPECT_GT(longest_line(schedule(shape).text), 600u);
  EXPECT_THAT(schedule(shape).text, Not(HasSubstr("folded")));
  on_a_terminal(work, "TERM=xterm NO_COLOR=", shape + "--output " + (work / "table.txt").string());
  EXPECT_EQ(read_file(work / "table.txt"), schedule(shape).text);
}

} // namespace
} // namespace triax::test
