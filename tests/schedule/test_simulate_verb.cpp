// SPDX-License-Identifier: Apache-2.0
// triax simulate: unrounded figures, and what the documentation shows. tests/cli has transcripts of the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace triax::test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Outcome simulate(const std::string& arguments, const std::string& streams = "2>&1") {
  return run(".", "simulate " + arguments, streams);
}

TEST(SimulateVerb, TheDocumentedResultsAreCurrent) {
  EXPECT_THAT(read_file(TRIAX_SOURCE_DIR "/docs/schedules.md"),
              HasSubstr(simulate("--scheduler sched-zb-h1 --pipeline 8 --microbatches 24 --forward-ms 18.522 "
                                 "--input-ms 18.086 --weight-ms 9.337 --link-ms 0.601")
                            .text));
  EXPECT_THAT(
      read_file(TRIAX_SOURCE_DIR "/docs/schedules.md"),
      HasSubstr(simulate("--scheduler sched-breadth-first --pipeline 4 --chunks 4 --microbatches 8 --forward-ms "
                         "5 --input-ms 5 --weight-ms 5 --link-ms 0.5 --reduce-ms 12 --optimizer-ms 2")
                    .text));
}

TEST(SimulateVerb, PrintsOneObjectOfUnroundedFigures) {
  const Outcome outcome = simulate(
      "--scheduler sched-1f1b --pipeline 8 --microbatches 24 --forward-ms 18.522 --input-ms 18.086 --weight-ms 9.337 "
      "--link-ms 0.601 --json");
  EXPECT_EQ(outcome.status, 0);
  const Json out = Json::parse(outcome.text);
  EXPECT_EQ(out.size(), 6u);
  // (m + p-1)(F + I + W), and 54 links on the longest path.
  EXPECT_NEAR(out["makespan_ms"].get<double>(), 31 * 45.945 + 54 * 0.601, 1e-9);
  EXPECT_EQ(out["active_ms"], out["makespan_ms"]);
  EXPECT_EQ(out["step_ms"], out["makespan_ms"]); // without times of the end of a step
  EXPECT_NEAR(out["bubble_rate"].get<double>(), 1 - 24 * 45.945 / out["active_ms"].get<double>(), 1e-12);
  EXPECT_NEAR(out["bubble_over_ideal"].get<double>(), out["active_ms"].get<double>() / (24 * 45.945) - 1, 1e-12);
  EXPECT_EQ(out["peak_in_flight"], (std::vector<int>{8, 7, 6, 5, 4, 3, 2, 1}));
}

} // namespace
} // namespace triax::test
