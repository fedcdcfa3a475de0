// What is told of a failure: the whole text, and the same for programs.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "launch/failure_report.hpp"
#include "support/temp_folder.hpp"

namespace triax::launch {
namespace {

using control::RankStatus;
using ::testing::HasSubstr;
using State = RankStatus::State;

const Layout& four() {
  static const Layout layout = Layout::ptd(2, 2, 1);
  return layout;
}

FailureFacts lost() {
  return {four(),
          {2, true, "killed by signal 9 (Killed)"},
          {{State::left, 4209, "n7", "step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx", 0.2},
           {State::here, 4210, "n7", "step 118, 0F3", 19.4},
           {State::lost, 4211, "n7", "step 118, 1F3", 0.3, 0.42},
           {State::missing, 0, "", "", 0}},
          117,
          1.234};
}

TEST(FailureReport, NamesWhoWasLostWhereAndWhereTheOthersStood) {
  EXPECT_EQ(to_text(lost()),
            "rank 2 (pipeline 1, data 0, tensor 0; host n7, pid 4211) was lost after step 117: killed by signal 9 "
            "(Killed)\n"
            "  its last place: step 118, 1F3 (told 0.4 s before)\n"
            "  rank 0: step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx\n"
            "  rank 1: step 118, 0F3; not heard of for 19.4 s: its process is stopped, or its host is gone\n"
            "  rank 3: it never came\n"
            "  all ranks stopped after 1.2 s");
}

TEST(FailureReport, TheErrorOfARankThatGaveUpStandsInItsLog) {
  FailureFacts facts = lost();
  facts.failure = {0, false, "step 118, 0F3: out of luck"};
  facts.ranks[0].place.clear();
  facts.last_step = 0;
  EXPECT_THAT(to_text(facts),
              HasSubstr("rank 0 (pipeline 0, data 0, tensor 0; host n7, pid 4209) gave up before the end "
                        "of step 1\n  its last place: it was starting\n"));
}

TEST(FailureReport, OfManyRanksTheFirstAreShown) {
  const Layout many = Layout::ptd(1, 1, 40);
  FailureFacts facts{many, {39, true, "its connection closed"}, std::vector<RankStatus>(40), 0, 0};
  EXPECT_THAT(to_text(facts), HasSubstr("  rank 15: it never came\n  ... and 23 more ranks: see failure.json\n"));
}

TEST(FailureReport, TheFileHoldsTheSame) {
  const test::TempFolder folder;
  write_failure(lost(), folder.path());
  const auto read = nlohmann::json::parse(test::read_file(folder / "failure.json"));
  EXPECT_EQ(read["rank"], 2);
  EXPECT_EQ(read["lost"], true);
  EXPECT_EQ(read["why"], "killed by signal 9 (Killed)");
  ASSERT_EQ(read["ranks"].size(), 4u);
  EXPECT_EQ(read["ranks"][3]["state"], "missing");
  EXPECT_EQ(read["ranks"][1]["place"], "step 118, 0F3");
  EXPECT_EQ(read["ranks"][2]["pid"], 4211);
  EXPECT_EQ(read["ranks"][2]["place_age_s"], 0.42);
}

} // namespace
} // namespace triax::launch
