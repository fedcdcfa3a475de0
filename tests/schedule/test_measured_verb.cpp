// SPDX-License-Identifier: Apache-2.0
// triax schedule --measured for a run of kernels-sim: all formats. tests/cli shows its errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

// Two stages per rank; passes take about a millisecond.
const char* const kRun = R"([model]
plugin = "model-gpt"
layers = 4
hidden = 16
heads = 2
sequence = 8

[parallel]
pipeline = 2
chunks = 2
data = 2

[batch]
global = 8

[schedule]
plugin = "sched-interleaved"

[comm]
plugin = "comm-local"

[kernels]
plugin = "kernels-sim"
op_us = 100

[optimizer]
plugin = "optim-sgd"
lr = 1e-2

[train]
steps = 3

[data]
path = "text"

[log]
timeline = 2

[run]
dir = "run"
)";

class MeasuredVerb : public ::testing::Test {
 protected:
  MeasuredVerb() {
    write_file(folder_ / "run.toml", kRun);
    write_file(folder_ / "text.txt", std::string(2000, 'a'));
    EXPECT_EQ(triax("data prepare --input text.txt --output text --tokenizer byte", "2>&1").status, 0);
  }
  Outcome triax(const std::string& arguments, const std::string& streams = "2>/dev/null") const {
    return run(folder_.path(), arguments, streams);
  }
  Outcome measured(const std::string& more = "") const { return triax("schedule run.toml --measured " + more, "2>&1"); }
  void train(const std::string& more = "") const {
    const Outcome out = triax("train run.toml " + more, "2>&1");
    EXPECT_EQ(out.status, 0) << out.text;
  }
  TempFolder folder_;
};

TEST_F(MeasuredVerb, ShowsTheStepInEveryFormat) {
  train();
  const Outcome words = measured();
  EXPECT_EQ(words.status, 0);
  EXPECT_THAT(words.text, AllOf(StartsWith("step 2, ms: bubble "), HasSubstr("slow stages"), HasSubstr("stage  rank")));

  const Json drawing = Json::parse(measured("--format json").text);
  EXPECT_EQ(drawing["step"], 2);
  ASSERT_EQ(drawing["ranks"].size(), 2u);
  EXPECT_EQ(drawing["ranks"][1]["rank"], 2); // pipeline rank 1 of data rank 0; data ranks have adjacent numbers
  for (const Json& rank : drawing["ranks"]) {
    const double sum = rank["even_ms"].get<double>() + rank["slow_stages_ms"].get<double>() +
                       rank["slow_passes_ms"].get<double>() + rank["late_ms"].get<double>() +
                       rank["overhead_ms"].get<double>();
    EXPECT_NEAR(sum, rank["measured_ms"].get<double>(), 1e-6);
  }
  for (const char* timeline : {"measured", "simulated"}) {
    ASSERT_EQ(drawing[timeline]["ranks"].size(), 2u);
    for (const Json& rank : drawing[timeline]["ranks"]) EXPECT_EQ(rank.size(), 2u * 2 * 4); // chunks, F and B, m = 4
  }

  const std::string svg = measured("--format svg").text;
  EXPECT_THAT(svg, AllOf(StartsWith("<svg"), HasSubstr(">measured<"), HasSubstr(">simulated<"), HasSubstr("step 2")));
}

/// Of the stages 0 to 3, which have a block each, the last ends with the head and has no R. The ranks have 0 and 2, and
/// 1 and 3.
TEST_F(MeasuredVerb, ShowsRecomputation) {
  train("--set memory.recompute=full");
  const Outcome words = measured();
  EXPECT_EQ(words.status, 0) << words.text;
  EXPECT_THAT(words.text, HasSubstr("B or I"));
  EXPECT_THAT(words.text, ::testing::ContainsRegex("W +R\n"));
  const Json drawing = Json::parse(measured("--format json").text);
  for (const char* timeline : {"measured", "simulated"})
    for (const std::size_t rank : {0u, 1u}) {
      int recomputed = 0;
      for (const Json& pass : drawing[timeline]["ranks"][rank]) recomputed += pass["kind"] == "R";
      EXPECT_EQ(recomputed, rank == 0 ? 2 * 4 : 4) << timeline;
    }
  EXPECT_THAT(measured("--format svg").text, HasSubstr(">R recomputation<"));
}

/// Besides the two timelines, a process for each of the four ranks, with its communication and waits.
TEST_F(MeasuredVerb, ATraceHasEveryRankWithItsCommunicationAndWaits) {
  train();
  const Json trace = Json::parse(measured("--format trace").text);
  std::map<int, std::string> processes;
  std::map<int, std::set<std::string>> tracks, categories;
  for (const Json& event : trace["traceEvents"]) {
    const int process = event["pid"];
    if (event["name"] == "process_name") processes[process] = event["args"]["name"];
    if (event["name"] == "thread_name") tracks[process].insert(event["args"]["name"].get<std::string>());
    if (event["ph"] != "X") continue;
    categories[process].insert(event["cat"].get<std::string>());
    EXPECT_GE(event["dur"], 0);
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "measured"},
                                                   {1, "simulated"},
                                                   {2, "rank 0: pipeline 0, data 0, tensor 0"},
                                                   {3, "rank 1: pipeline 0, data 1, tensor 0"},
                                                   {4, "rank 2: pipeline 1, data 0, tensor 0"},
                                                   {5, "rank 3: pipeline 1, data 1, tensor 0"}}));
  EXPECT_THAT(tracks[2], IsSupersetOf({"compute", "waits", "pipeline: send to rank 2", "pipeline: receive from rank 2",
                                       "data, beside computing"}));
  EXPECT_THAT(tracks[5],
              IsSupersetOf({"compute", "waits", "pipeline: send to rank 1", "pipeline: receive from rank 1"}));
  for (int process = 2; process < 6; ++process)
    EXPECT_THAT(categories[process],
                IsSupersetOf({"step", "F", "B", "post", "NORM", "OPT_STEP", "wait", "pipeline", "data"}));
}

TEST_F(MeasuredVerb, RanksOfTwoMachinesAreDrawnOnOneClock) {
  train();
  EXPECT_THAT(measured("--format svg").text, Not(HasSubstr("clocks of")));
  const std::filesystem::path file = folder_ / "run/timeline-rank-2.json";
  Json drawing = Json::parse(read_file(file));
  drawing["host"] = "n7";
  drawing["boot"] = "another";
  for (Json& pass : drawing["passes"])
    for (const char* key : {"start_ms", "end_ms"}) pass[key] = pass[key].get<double>() + 1e9;
  write_file(file, drawing.dump());
  EXPECT_THAT(measured("--format svg").text, HasSubstr(", n7 aligned by their transfers, to within "));
  const Json two = Json::parse(measured("--format json").text);
  EXPECT_GE(two["clocks_within_ms"].get<double>(), 0);
  EXPECT_LT(two["measured"]["ranks"][1][0]["start"].get<double>(), 1e6);
}

} // namespace
} // namespace triax::test
