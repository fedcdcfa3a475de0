// Timelines of ranks as files: what is written reads back to the same bits, and nothing else is taken for one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    return triax::testing::error_of([&] { report::read_timeline(folder_.path(), 3); });
  }
  test::TempFolder folder_;
};

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

TEST_F(TimelineFile, ARankMayHaveNoPasses) {
  report::write_timeline(folder_.path(), {3, 1, {}, 4, {}});
  EXPECT_TRUE(report::read_timeline(folder_.path(), 3).passes.empty());
}

TEST_F(TimelineFile, SaysHowToGetOne) {
  EXPECT_THAT(triax::testing::error_of([&] { report::read_timeline(folder_.path(), 3); }),
              AllOf(HasSubstr("timeline-rank-3.json: cannot be read: No such file"), HasSubstr("log.timeline")));
}

TEST_F(TimelineFile, OneThatLiesElsewhereIsMissedInOtherWords) {
  report::write_timeline(folder_.path(), {2, 1, {}, 4, {}});
  EXPECT_THAT(triax::testing::error_of([&] { report::read_timeline(folder_.path(), 3); }),
              AllOf(HasSubstr("timeline-rank-3.json: cannot be read: No such file"),
                    HasSubstr("of other ranks there are 1: copy it there")));
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
    EXPECT_THAT(refusal(content), AllOf(HasSubstr("timeline-rank-3.json: is no timeline of a rank"),
                                        ::testing::Not(HasSubstr("json.exception"))))
        << content;
}

TEST_F(TimelineFile, NumbersThatNoRankWritesAreTold) {
  const auto with = [](const char* rank, const char* step, const char* stage, const char* start, const char* waited) {
    return text(R"("rank":{},"ranks":4,"host":"a","boot":"b","step":{},"passes":[)", rank, step) +
           R"({"kind":"F","stage":0,"microbatch":0,"start_ms":1,"end_ms":2,"waited_ms":0},)" +
           text(R"("kind":"B","stage":{},"microbatch":0,"start_ms":{},"end_ms":4,"waited_ms":{})", stage, start,
                waited);
  };
  const auto told = [&](const char* rank, const char* step, const char* stage, const char* start, const char* waited) {
    std::string file = "{" + with(rank, step, stage, start, waited) + "}]}";
    file.insert(file.find(R"("kind":"B")"), "{");
    return refusal(file);
  };
  EXPECT_EQ(told("3", "1", "0", "3", "0"), "no error");
  EXPECT_THAT(told("2", "1", "0", "3", "0"), HasSubstr("rank is 2"));
  EXPECT_THAT(told("3", "-5", "0", "3", "0"), HasSubstr("step is -5"));
  EXPECT_THAT(told("3", "1e300", "0", "3", "0"), HasSubstr("step is 1e+300"));
  EXPECT_THAT(told("3", "1", "4294967298", "3", "0"), HasSubstr("stage is 4294967298"));
  EXPECT_THAT(told("3", "1", "0", "1.5", "0"), HasSubstr("start_ms is 1.5, and no time from 2 on"));
  EXPECT_THAT(told("3", "1", "0", "5", "0"), HasSubstr("end_ms is 4, and no time from 5 on"));
  EXPECT_THAT(told("3", "1", "0", "3", "-1"), HasSubstr("waited_ms is -1"));
}

TEST_F(TimelineFile, AFolderThatIsNotThereIsTold) {
  EXPECT_THAT(triax::testing::error_of([&] {
                report::write_timeline(folder_ / "none", {0, 1, {}});
              }),
              HasSubstr("none/timeline-rank-0.json: cannot be written: No such file"));
}

TEST_F(TimelineFile, ThoseOfAnEarlierRunGoAndNothingElse) {
  for (const char* name : {"timeline-rank-0.json", "timeline-rank-12.json", "metrics.jsonl", "timeline-rank-0.txt"})
    test::write_file(folder_ / name, "");
  report::remove_timelines(folder_.path());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "timeline-rank-0.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "timeline-rank-12.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "metrics.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "timeline-rank-0.txt"));
}

} // namespace
