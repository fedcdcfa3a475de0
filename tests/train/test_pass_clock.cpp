// A step whose passes a rank times: those of that step, in the order of its program, in the run's folder.
#include <gtest/gtest.h>

#include "report/timeline_file.hpp"
#include "train/tiny_run.hpp"

namespace triax {
namespace {

using schedule::Kind;
using test::TinyRank;
using test::TinyRun;

class Counted final : public executor::WalkObserver {
 public:
  void walk_begins(std::int64_t) override { ++walks; }
  void ran(ActionId, const executor::PassTime&) override { ++passes; }
  void walk_ends(std::int64_t) override {}
  int walks = 0, passes = 0;
};

class PassClock : public ::testing::Test {
 protected:
  PassClock() {
    run_.keys["log.timeline"] = "2";
    std::filesystem::create_directories(run_.folder() / "run");
  }
  TinyRun run_;
};

TEST_F(PassClock, TimesThePassesOfTheOneStep) {
  Counted others;
  train::RankOptions options;
  options.observer = &others;
  TinyRank rank(run_, options);
  rank->step();
  EXPECT_FALSE(std::filesystem::exists(run_.folder() / "run/timeline-rank-0.json"));
  rank->step();
  const report::RankTimeline told = report::read_timeline(run_.folder() / "run", 0);
  rank->step();
  EXPECT_EQ(others.walks, 3);
  EXPECT_EQ(others.passes, 3 * 8);

  EXPECT_EQ(told.rank, 0);
  EXPECT_EQ(told.step, 2);
  ASSERT_EQ(told.passes.size(), 8u); // sched-gpipe: four forwards, four backwards
  double before = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const schedule::MeasuredPass& pass = told.passes[i];
    EXPECT_EQ(pass.span.kind, i < 4 ? Kind::forward : Kind::backward);
    EXPECT_GE(pass.span.start, before);
    EXPECT_GT(pass.span.end, pass.span.start);
    EXPECT_EQ(pass.waited_ms, 0); // for nobody
    before = pass.span.end;
  }
}

TEST_F(PassClock, IsNotThereUnlessAskedFor) {
  run_.keys["log.timeline"] = "0";
  TinyRank rank(run_);
  rank->step();
  EXPECT_FALSE(std::filesystem::exists(run_.folder() / "run/timeline-rank-0.json"));
}

TEST_F(PassClock, AStepAfterTheLastIsRefused) {
  run_.keys["log.timeline"] = "7";
  const config::Loaded loaded = run_.load();
  ASSERT_EQ(loaded.refusals.size(), 1u);
  EXPECT_NE(loaded.refusals[0].text.find("log.timeline = 7 is after the last step, train.steps = 6"), std::string::npos)
      << loaded.refusals[0].text;
}

} // namespace
} // namespace triax
