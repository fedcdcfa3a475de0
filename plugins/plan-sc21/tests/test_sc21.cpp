// SPDX-License-Identifier: Apache-2.0
// The takeaways of SC'21, with an evaluator whose answers are known.
#include <gtest/gtest.h>

#include "plugin/loader.hpp"
#include "support/installation.hpp"
#include "triax/planner.hpp"

namespace {
using namespace triax;

/// 32 ranks, 8 per node. A plan fits if the model is divided over `ranks_of_model`; a pass of b sequences takes 1 + b.
class KnownMemory final : public PlanEvaluator {
 public:
  explicit KnownMemory(int ranks_of_model) : ranks_of_model_(ranks_of_model) {
    space_.ranks = 32;
    space_.batch = 64;
    space_.blocks = 32;
    space_.devices_per_node = 8;
    space_.pipeline = space_.tensor = space_.data = {1, 2, 4, 8, 16, 32};
    space_.chunks = {1, 2};
    space_.micro = {1, 2, 4, 8, 16};
    space_.recompute = {Recompute::none, Recompute::cheap, Recompute::full};
    space_.sequence = {false, true};
    space_.schedules = {"sched-gpipe", "sched-1f1b"};
    space_.shards = {"none", "states"};
  }
  const PlanSpace& space() const override { return space_; }
  std::optional<PlanBounds> bounds(const TrainingPlan&) override { return PlanBounds{}; }
  std::optional<PlanTime> time(const TrainingPlan& plan) override {
    PlanTime out;
    out.compute = static_cast<double>(plan.microbatches(space_.batch) * (1 + plan.micro));
    return out;
  }
  std::optional<PlanEvaluation> evaluate(const TrainingPlan& plan) override {
    return PlanEvaluation{plan.pipeline * plan.tensor >= ranks_of_model_, 10, time(plan).value()};
  }
  std::uint64_t memory_limit() const override { return 50; }
  bool is_interrupted() override { return false; }

 private:
  PlanSpace space_;
  const int ranks_of_model_;
};

TrainingPlan best(int ranks_of_model) {
  const plugin::Library& library = plugin::load(test::plugin_file("plan-sc21"), Planner::kKind);
  const Options options;
  const Layout layout = Layout::ptd(1, 1, 1);
  const auto planner = plugin::create<Planner>(library, {options, null_log(), layout, 0, 1});
  KnownMemory memory(ranks_of_model);
  return planner->search(memory, 1).at(0);
}

// B / d = 32 sequences of 16 ranks; with p = 2, equation 1 is (32/b + 1) (1 + b): 66, 51, 45, 45, 51.
TEST(PlanSc21, TensorRanksFillANodeBeforeThePipelineBegins) {
  const TrainingPlan plan = best(16);
  EXPECT_EQ(plan.tensor, 8);
  EXPECT_EQ(plan.pipeline, 2);
  EXPECT_EQ(plan.data, 2);
  EXPECT_EQ(plan.micro, 4);
  EXPECT_EQ(plan.schedule, 1); // sched-1f1b
  EXPECT_EQ(plan.recompute, Recompute::full);
  EXPECT_EQ(plan.chunks, 1);
}

TEST(PlanSc21, AllOtherRanksAreDataRanks) {
  EXPECT_EQ(best(1).data, 32);
  EXPECT_EQ(best(4).tensor, 4);
  EXPECT_EQ(best(4).data, 8);
}

} // namespace
