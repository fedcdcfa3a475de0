// SPDX-License-Identifier: Apache-2.0
// Timeline files of ranks: they round-trip with the same bits, and other files are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "report/timeline_file.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace {
using namespace triax;
using schedule::Kind;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TimelineFile : public ::testing::Test {
 protected:
  std::string refusal(const std::string& content) {
    test::write_file(folder_ / "timeline-rank-3.json", content);
    return triax::test::error_of([&] { report::read_timeline(folder_.path(), 3); });
  }
  test::TempFolder folder_;
};

TEST_F(TimelineFile, AFifoIsRefusedAndDoesNotBlock) {
  ASSERT_EQ(::mkfifo((folder_ / "timeline-rank-3.json").c_str(), 0600), 0);
  EXPECT_THAT(triax::test::error_of([&] { report::read_timeline(folder_.path(), 3); }),
              HasSubstr("timeline-rank-3.json: is not a regular file"));
}

TEST_F(TimelineFile, ReadsBackToTheSameBits) {
  const report::RankTimeline written{
      3,
      17,
      {{{Kind::forward, 2, 5, 0.1, 1.0 / 3}, 1e-7}, {{Kind::backward_weight, 2, 5, 123456789.125, 1e9}, 0}},
      8,
      {"n\"7", "4f1c-9"}};
  report::write_timeline(folder_.path(), written);
  const report::RankTimeline read = report::read_timeline(folder_.path(), 3);
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.step, 17);
  EXPECT_EQ(read.ranks, 8);
  EXPECT_EQ(read.machine, (report::Machine{"n\"7", "4f1c-9"}));
  ASSERT_EQ(read.passes.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const schedule::MeasuredPass &of = written.passes[i], &got = read.passes[i];
    EXPECT_EQ(got.span.kind, of.span.kind);
    EXPECT_EQ(got.span.stage, of.span.stage);
    EXPECT_EQ(got.span.microbatch, of.span.microbatch);
    EXPECT_EQ(got.span.start, of.span.start);
    EXPECT_EQ(got.span.end, of.span.end);
    EXPECT_EQ(got.waited_ms, of.waited_ms);
  }
}

TEST_F(TimelineFile, ReadsBackActionsCallsAndWaits) {
  report::RankTimeline written{3, 2, {}, 8, {"n7", "4f1c"}, 10, 20.5};
  written.actions = {{{Kind::send_f, 2, 5, 11, 11.25}, 0}, {{Kind::norm, -1, -1, 12, 13}, 0.5}};
  written.calls = {{"send", "pipeline", "2SEND_F5", 7, 4096, 11, 1.0 / 3 + 12, false},
                   {"all_gather", "data", "NORM", -1, 1, 12, 12, true}};
  written.waits = {{11.5, 12, "2RECV_B0", 7}, {13, 20.5, "the end of the step", -1}};
  report::write_timeline(folder_.path(), written);
  const report::RankTimeline read = report::read_timeline(folder_.path(), 3);
  EXPECT_EQ(read.start, 10);
  EXPECT_EQ(read.end, 20.5);
  ASSERT_EQ(read.actions.size(), 2u);
  EXPECT_EQ(read.actions[0].span.kind, Kind::send_f);
  EXPECT_EQ(read.actions[1].span.stage, -1);
  EXPECT_EQ(read.actions[1].waited_ms, 0.5);
  EXPECT_EQ(read.calls, written.calls);
  EXPECT_EQ(read.waits, written.waits);
}

TEST_F(TimelineFile, PassesAloneAreATimeline) {
  const std::string head = R"({"rank":3,"ranks":4,"host":"a","boot":"b","step":1,"passes":[])";
  EXPECT_EQ(refusal(head + "}"), "no error");
  EXPECT_EQ(refusal(head + R"(,"of_a_later_version":1})"), "no error");
  const std::string call = R"({"call":"send","axis":"pipeline","action":"0SEND_F0","bytes":1,"posted_ms":)";
  EXPECT_EQ(refusal(head + R"(,"calls":[)" + call + R"(1,"completed_ms":2,"awaited":false}]})"), "no error");
  EXPECT_THAT(refusal(head + R"(,"calls":[)" + call + R"(3,"completed_ms":2,"awaited":false}]})"),
              HasSubstr("completed_ms must be a time of 3 or later, got 2"));
  EXPECT_THAT(refusal(head + R"(,"waits":[{"start_ms":2,"end_ms":1,"for":""}]})"),
              HasSubstr("end_ms must be a time of 2 or later, got 1"));
  EXPECT_THAT(refusal(head + R"(,"actions":[{"kind":"F","stage":0,"microbatch":0,"start_ms":0,"end_ms":1,)"
                             R"("waited_ms":0}]})"),
              HasSubstr("\"F\" is not an action, or is a pass"));
}

TEST_F(TimelineFile, ARankMayHaveNoPasses) {
  report::write_timeline(folder_.path(), {3, 1, {}, 4, {}});
  EXPECT_TRUE(report::read_timeline(folder_.path(), 3).passes.empty());
}

TEST_F(TimelineFile, SaysHowToGetOne) {
  EXPECT_THAT(triax::test::error_of([&] { report::read_timeline(folder_.path(), 3); }),
              AllOf(HasSubstr("timeline-rank-3.json: does not exist"), HasSubstr("log.timeline")));
}

TEST_F(TimelineFile, OneInAnotherFolderHasItsOwnMessage) {
  report::write_timeline(folder_.path(), {2, 1, {}, 4, {}});
  EXPECT_THAT(triax::test::error_of([&] { report::read_timeline(folder_.path(), 3); }),
              AllOf(HasSubstr("timeline-rank-3.json: does not exist"),
                    HasSubstr("the folder has the files of 1 other ranks: copy this file")));
}

TEST_F(TimelineFile, NamesTheMachineThatItsTimesAreOf) {
  EXPECT_FALSE(report::this_machine().host.empty());
  EXPECT_EQ(report::this_machine(), report::this_machine());
}

TEST_F(TimelineFile, TakesNothingElseForOne) {
  for (const char* content : {"", "{", "[]", "{\"rank\":3}",
                              "{\"rank\":3,\"ranks\":4,\"host\":\"a\",\"boot\":\"b\",\"step\":1,\"passes\":[{}]}",
                              "{\"rank\":3,\"ranks\":4,\"host\":\"a\",\"boot\":\"b\",\"step\":1,\"passes\":[{\"kind\":"
                              "\"NORM\",\"stage\":0,\"microbatch\":0,\"start_ms\":0,"
                              "\"end_ms\":1,\"waited_ms\":0}]}",
                              "{\"rank\":\"three\",\"step\":1,\"passes\":[]}"})
    EXPECT_THAT(refusal(content), AllOf(HasSubstr("timeline-rank-3.json: is not a timeline of a rank"),
                                        ::testing::Not(HasSubstr("json.exception"))))
        << content;
}

TEST_F(TimelineFile, NumbersThatNoRankWritesAreReported) {
  const auto with = [](const char* rank, const char* step, const char* stage, const char* start, const char* waited) {
    return text(R"("rank":{},"ranks":4,"host":"a","boot":"b","step":{},"passes":[)", rank, step) +
           R"({"kind":"F","stage":0,"microbatch":0,"start_ms":1,"end_ms":2,"waited_ms":0},)" +
           text(R"("kind":"B","stage":{},"microbatch":0,"start_ms":{},"end_ms":4,"waited_ms":{})", stage, start,
                waited);
  };
  const auto row = [&](const char* rank, const char* step, const char* stage, const char* start, const char* waited) {
    std::string file = "{" + with(rank, step, stage, start, waited) + "}]}";
    file.insert(file.find(R"("kind":"B")"), "{");
    return refusal(file);
  };
  EXPECT_EQ(row("3", "1", "0", "3", "0"), "no error");
  EXPECT_THAT(row("2", "1", "0", "3", "0"), HasSubstr("rank must be 3, got 2"));
  EXPECT_THAT(row("3", "-5", "0", "3", "0"), AllOf(HasSubstr("step must be an integer in [1, "), HasSubstr("got -5")));
  EXPECT_THAT(row("3", "1e300", "0", "3", "0"), HasSubstr("got 1e+300"));
  EXPECT_THAT(row("3", "1", "4294967298", "3", "0"),
              HasSubstr("stage must be an integer in [0, 2147483647], got 4294967298"));
  EXPECT_THAT(row("3", "1", "0", "1.5", "0"), HasSubstr("start_ms must be a time of 2 or later, got 1.5"));
  EXPECT_THAT(row("3", "1", "0", "5", "0"), HasSubstr("end_ms must be a time of 5 or later, got 4"));
  EXPECT_THAT(row("3", "1", "0", "3", "-1"), HasSubstr("waited_ms must be a time of 0 or later, got -1"));
}

TEST_F(TimelineFile, AFolderThatIsNotThereIsReported) {
  EXPECT_THAT(triax::test::error_of([&] {
                report::write_timeline(folder_ / "none", {0, 1, {}});
              }),
              HasSubstr("none/timeline-rank-0.json: cannot be written: No such file"));
}

TEST_F(TimelineFile, AreFoundAmongOtherFiles) {
  for (const char* name : {"timeline-rank-0.json", "timeline-rank-12.json", "metrics.jsonl", "timeline-rank-0.txt",
                           "timeline-rank-.json", "timeline-rank-of-mine.json"})
    test::write_file(folder_ / name, "");
  std::vector<std::string> found;
  for (const std::filesystem::path& file : report::timelines_in(folder_.path()))
    found.push_back(file.filename().string());
  EXPECT_THAT(found, ::testing::UnorderedElementsAre("timeline-rank-0.json", "timeline-rank-12.json"));
}

} // namespace
