// SPDX-License-Identifier: Apache-2.0
// triax simulate: output and exit status. Error messages are cases of tests/golden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/program.hpp"
#include "support/temp_folder.hpp"
#include "triax/text.hpp"

namespace triax::test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const char* const kUnitTimes = " --forward-ms 1 --input-ms 1 --weight-ms 1 --link-ms 0";

Outcome simulate(const std::string& arguments, const std::string& streams = "2>&1") {
  return run(".", "simulate " + arguments, streams);
}

TEST(SimulateVerb, TheDocumentedResultIsCurrent) {
  EXPECT_THAT(read_file(TRIAX_SOURCE_DIR "/docs/schedules.md"),
              HasSubstr(simulate("--scheduler sched-zb-h1 --pipeline 8 --microbatches 24 --forward-ms 18.522 "
                                 "--input-ms 18.086 --weight-ms 9.337 --link-ms 0.601")
                            .text));
}

TEST(SimulateVerb, PrintsOneObjectOfUnroundedFigures) {
  const Outcome told = simulate(
      "--scheduler sched-1f1b --pipeline 8 --microbatches 24 --forward-ms 18.522 --input-ms 18.086 --weight-ms 9.337 "
      "--link-ms 0.601 --json");
  EXPECT_EQ(told.status, 0);
  const Json out = Json::parse(told.text);
  EXPECT_EQ(out.size(), 5u);
  // (m + p-1)(F + I + W), and 54 links on the longest path.
  EXPECT_NEAR(out["makespan_ms"].get<double>(), 31 * 45.945 + 54 * 0.601, 1e-9);
  EXPECT_EQ(out["cost_ms"], out["makespan_ms"]);
  EXPECT_NEAR(out["bubble_rate"].get<double>(), 1 - 24 * 45.945 / out["cost_ms"].get<double>(), 1e-12);
  EXPECT_NEAR(out["bubble_over_ideal"].get<double>(), out["cost_ms"].get<double>() / (24 * 45.945) - 1, 1e-12);
  EXPECT_EQ(out["peak_in_flight"], (std::vector<int>{8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(SimulateVerb, ZeroBubbleIsZero) {
  const Json out = Json::parse(
      simulate(text("--scheduler sched-zb-v --pipeline 4 --chunks 2 --microbatches 8 --json{}", kUnitTimes)).text);
  EXPECT_EQ(out["bubble_rate"], 0.0);
  EXPECT_EQ(out["bubble_over_ideal"], 0.0);
  EXPECT_EQ(out["cost_ms"], 48.0);
  EXPECT_EQ(out["makespan_ms"], 51.0); // the last rank starts three forwards later
  EXPECT_EQ(out["peak_in_flight"], (std::vector<int>{8, 8, 8, 8}));
}

TEST(SimulateVerb, TakesOptionsOfTheScheduler) {
  const std::string verb =
      text("--scheduler sched-interleaved --pipeline 2 --chunks 2 --microbatches 6 --json{}", kUnitTimes);
  EXPECT_EQ(Json::parse(simulate(verb).text)["peak_in_flight"], (std::vector<int>{5, 3}));
  EXPECT_EQ(Json::parse(simulate(verb + " --set schedule.group=3").text)["peak_in_flight"], (std::vector<int>{6, 4}));
}

TEST(SimulateVerb, TakesARunsOwnScheduleAndShape) {
  const TempFolder work;
  write_file(work / "run.toml", read_file(GOLDEN_CASES "/schedule-m-not-a-multiple/run.toml"));
  write_file(work / "text.txt", std::string(1000, 'x'));
  run(work.path(), "data prepare --input text.txt --output text --tokenizer byte", "2>&1");
  const std::string verb =
      text("simulate run.toml --set data.path=text --set parallel.pipeline=2 --json{}", kUnitTimes);
  const Outcome told = run(work.path(), verb + " --set batch.global=4", "2>&1");
  EXPECT_EQ(told.status, 0);
  EXPECT_EQ(Json::parse(told.text)["cost_ms"], 2 * 2 * 3 + 3.0);
}

TEST(SimulateVerb, ARefusalIsTheOneObject) {
  const Outcome told =
      simulate(text("--scheduler sched-zb-v --pipeline 4 --microbatches 8 --json{}", kUnitTimes), "2>/dev/null");
  EXPECT_EQ(told.status, 2);
  EXPECT_EQ(Json::parse(told.text)["refusals"].size(), 1u);
  const Outcome unreadable = simulate("--scheduler sched-zb-v --forward-ms nan --json", "2>/dev/null");
  EXPECT_EQ(unreadable.status, 2);
  EXPECT_THAT(Json::parse(unreadable.text)["problem"].get<std::string>(), HasSubstr("not \"nan\""));
}

TEST(SimulateVerb, AScheduleThatDoesNotHoldIsAFailure) {
  const Outcome told =
      simulate(text("--scheduler sched-faulty --path {} --pipeline 2 --microbatches 2 --set schedule.fault=deadlock{}",
                    FIXTURES, kUnitTimes),
               "2>&1 >/dev/null");
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.text, HasSubstr("sched-faulty: rank 0, position 1, 0B0: it waits for 1"));
}

} // namespace
} // namespace triax::test
