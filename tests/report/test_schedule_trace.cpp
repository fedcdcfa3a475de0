// SPDX-License-Identifier: Apache-2.0
// Timelines as trace events and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "draw/schedule_json.hpp"
#include "draw/schedule_trace.hpp"

namespace {
using namespace triax;
using namespace triax::schedule;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Json = nlohmann::json;

/// A V of two ranks: stage 2 is on the rank of stage 1, stage 3 on that of stage 0.
Timeline vee() {
  return {{2, 2, 1},
          StageMap({0, 1, 1, 0}),
          Timeline::Unit::pass,
          {{{Kind::forward, 0, 0, 0, 1},
            {Kind::forward, 3, 0, 3, 4},
            {Kind::backward_input, 3, 0, 4, 5},
            {Kind::backward_weight, 3, 0, 5, 6},
            {Kind::backward, 0, 0, 8, 10}},
           {{Kind::forward, 1, 0, 1, 2},
            {Kind::forward, 2, 0, 2, 3},
            {Kind::backward_input, 2, 0, 5, 6},
            {Kind::backward, 1, 0, 6, 8},
            {Kind::backward_weight, 2, 0, 8, 9},
            {Kind::opt_step, 0, -1, 10, 11}}}};
}

std::vector<Json> events(const std::string& trace, const std::string& phase) {
  std::vector<Json> out;
  const Json file = Json::parse(trace);
  for (const Json& event : file["traceEvents"])
    if (event["ph"] == phase) out.push_back(event);
  return out;
}

TEST(ScheduleTrace, EveryRankIsATrack) {
  std::vector<std::string> names;
  for (const Json& event : events(draw::schedule_trace({"a v", "", {{"", vee()}}}), "M"))
    if (event["args"].contains("name"))
      names.push_back(
          text("{} {} {}", event["pid"].get<int>(), event["tid"].get<int>(), event["args"]["name"].get<std::string>()));
  EXPECT_THAT(names, ElementsAre("0 0 a v", "0 0 rank 0", "0 1 rank 1"));
}

TEST(ScheduleTrace, ASlotIsAMillisecond) {
  const std::vector<Json> passes = events(draw::schedule_trace({"a v", "", {{"", vee()}}}), "X");
  ASSERT_EQ(passes.size(), 11u);
  EXPECT_EQ(passes[4]["name"], "B0 s0");
  EXPECT_EQ(passes[4]["args"]["action"], "0B0");
  EXPECT_EQ(passes[4]["ts"], 8000);
  EXPECT_EQ(passes[4]["dur"], 2000);
  EXPECT_EQ(passes[10]["name"], "OPT_STEP s0");
  EXPECT_EQ(passes[10]["tid"], 1);
}

/// A pass has no arrow to its own rank, or to a pass that needs no transfer.
TEST(ScheduleTrace, DrawsAnArrowToTheDependentPassOnAnotherRank) {
  const std::string trace = draw::schedule_trace({"a v", "", {{"", vee()}}});
  std::map<int, std::string> begun, arrows;
  for (const Json& event : events(trace, "s")) begun[event["id"]] = text("{}", event["ts"].get<double>());
  for (const Json& event : events(trace, "f")) {
    EXPECT_EQ(event["bp"], "e");
    arrows[event["id"]] =
        text("{} to {} on {}", begun.at(event["id"]), event["ts"].get<double>(), event["tid"].get<int>());
  }
  std::vector<std::string> spans;
  for (const auto& [id, arrow] : arrows) spans.push_back(arrow);
  EXPECT_EQ(begun.size(), arrows.size());
  EXPECT_THAT(spans, UnorderedElementsAre("999.999 to 1000 on 1",    // 0F0 to 1F0
                                          "2999.999 to 3000 on 0",   // 2F0 to 3F0
                                          "4999.999 to 5000 on 1",   // 3I0 to 2I0
                                          "7999.999 to 8000 on 0")); // 1B0 to 0B0
}

TEST(ScheduleTrace, PanelsAreProcesses) {
  const std::string trace = draw::schedule_trace({"a v", "", {{"measured", vee()}, {"simulated", vee()}}});
  std::map<int, int> passes, arrows;
  for (const Json& event : events(trace, "X")) ++passes[event["pid"]];
  for (const Json& event : events(trace, "s")) ++arrows[event["id"]];
  EXPECT_EQ(passes, (std::map<int, int>{{0, 11}, {1, 11}}));
  EXPECT_EQ(arrows.size(), 8u); // all ids differ
}

TEST(ScheduleJson, HasShapePlacementAndTimes) {
  const Json out = Json::parse(draw::schedule_json("sched-\"v\"", vee()));
  EXPECT_EQ(out["schedule"], "sched-\"v\"");
  EXPECT_EQ(out["pipeline"], 2);
  EXPECT_EQ(out["chunks"], 2);
  EXPECT_EQ(out["microbatches"], 1);
  EXPECT_EQ(out["stage_rank"], (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(out["unit"], "pass");
  EXPECT_EQ(out["active"], 10);
  ASSERT_EQ(out["ranks"].size(), 2u);
  ASSERT_EQ(out["ranks"][0].size(), 5u);
  EXPECT_EQ(out["ranks"][0][1],
            (Json{{"action", "3F0"}, {"kind", "F"}, {"stage", 3}, {"microbatch", 0}, {"start", 3.0}, {"end", 4.0}}));
}

} // namespace
