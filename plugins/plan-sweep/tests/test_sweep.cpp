// SPDX-License-Identifier: Apache-2.0
// The order and the pruning of plan-sweep, with an evaluator whose answers are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/planner.hpp"

namespace {
using namespace triax;

/// Plans of one pipeline rank per value of `micro`; the bound of a plan is its time less `below`.
class KnownTimes final : public PlanEvaluator {
 public:
  KnownTimes() {
    space_.batch = 8;
    space_.blocks = 1;
    space_.pipeline = space_.tensor = space_.data = space_.chunks = {1};
    space_.micro = {1, 2, 4, 8};
    space_.recompute = {Recompute::none};
    space_.sequence = {false};
    space_.schedules = {"sched-1f1b"};
    space_.shards = {"none"};
  }
  const PlanSpace& space() const override { return space_; }
  std::optional<PlanBounds> bounds(const TrainingPlan& plan) override {
    return PlanBounds{times_.at(plan.micro) - below - (plan.micro == 1 ? first_below : 0),
                      plan.micro == 8 ? std::uint64_t{100} : 1};
  }
  std::optional<PlanTime> time(const TrainingPlan& plan) override {
    timed.push_back(plan.micro);
    PlanTime out;
    out.compute = times_.at(plan.micro);
    return out;
  }
  std::optional<PlanEvaluation> evaluate(const TrainingPlan& plan) override {
    evaluated.push_back(plan.micro);
    return PlanEvaluation{plan.micro != 4, 10, time(plan).value()};
  }
  std::uint64_t memory_limit() const override { return 50; }
  bool is_interrupted() override { return timed.size() >= stop_after; }

  double below = 0.5;           // of the bounds
  double first_below = 0;       // of the bound of 1, in addition
  std::size_t stop_after = 100; // timed plans
  std::vector<std::int64_t> timed, evaluated;

 private:
  PlanSpace space_;
  const std::map<std::int64_t, double> times_ = {{1, 5}, {2, 3}, {4, 2}, {8, 1}};
};

std::vector<std::int64_t> found(KnownTimes& times, int count) {
  const plugin::Library& library = plugin::load(test::plugin_file("plan-sweep"), Planner::kKind);
  const Options options;
  const Layout layout = Layout::ptd(1, 1, 1);
  const auto planner = plugin::create<Planner>(library, {options, null_log(), layout, 0, 1});
  std::vector<std::int64_t> out;
  for (const TrainingPlan& plan : planner->search(times, count)) out.push_back(plan.micro);
  return out;
}

// 8 is over the limit by its bound, 4 by its size; 1 cannot be better than 2.
TEST(PlanSweep, EvaluatesInTheOrderOfBoundsUntilNoneCanBeBetter) {
  KnownTimes times;
  EXPECT_EQ(found(times, 1), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(times.evaluated, (std::vector<std::int64_t>{4, 2}));
}

// The bound of 1 is that of a better plan than 2.
TEST(PlanSweep, CountsTheMemoryOfNoPlanThatIsTooSlow) {
  KnownTimes times;
  times.below = 2.5;
  EXPECT_EQ(found(times, 1), (std::vector<std::int64_t>{2}));
  EXPECT_THAT(times.timed, ::testing::Contains(1));
  EXPECT_EQ(times.evaluated, (std::vector<std::int64_t>{4, 2}));
}

// 1 is timed first, and would fit.
TEST(PlanSweep, CountsTheMemoryOfTheFastestFirst) {
  KnownTimes times;
  times.first_below = 10;
  EXPECT_EQ(found(times, 1), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(times.timed.front(), 1);
  EXPECT_EQ(times.evaluated, (std::vector<std::int64_t>{4, 2}));
}

// 4 and 2 are timed.
TEST(PlanSweep, ThatIsStoppedReturnsTheBestOfThoseThatItTimed) {
  KnownTimes times;
  times.below = 2.5;
  times.stop_after = 2;
  EXPECT_EQ(found(times, 10), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(times.evaluated, (std::vector<std::int64_t>{4, 2}));
}

TEST(PlanSweep, ReturnsTheFastestFirst) {
  KnownTimes times;
  EXPECT_EQ(found(times, 10), (std::vector<std::int64_t>{2, 1}));
}

} // namespace
