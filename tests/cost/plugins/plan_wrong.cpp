// SPDX-License-Identifier: Apache-2.0
// plan-wrong: a planner that does what TRIAX_TEST_PLAN_WRONG names.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <triax/planner.hpp>
#include <triax/plugin.hpp>

namespace {
using namespace triax;

class Wrong final : public Planner {
 public:
  std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) override {
    const char* const named = std::getenv("TRIAX_TEST_PLAN_WRONG");
    const std::string what = named ? named : "";
    if (what == "throws") throw std::runtime_error("no idea");
    TrainingPlan plan = first(evaluator, true);
    if (what == "many") return std::vector<TrainingPlan>(static_cast<std::size_t>(count) + 1, plan);
    if (what == "twice") return {plan, plan};
    if (what == "unfit") plan = first(evaluator, false);
    if (what == "interrupted" || what == "interrupted before") {
      ::kill(::getpid(), SIGINT); // as Ctrl-C does
      while (!evaluator.is_interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (what == "interrupted before") return {};
    }
    if (what == "outside") plan.micro = 7;
    if (what == "schedule") plan.schedule = 99;
    if (what == "bounds") {
      plan.shard = -1;
      evaluator.bounds(plan);
    }
    if (what == "time") {
      plan.data = 3;
      evaluator.time(plan);
    }
    if (what == "evaluate") {
      plan.chunks = 0;
      evaluator.evaluate(plan);
    }
    return {plan};
  }

 private:
  static TrainingPlan first(PlanEvaluator& evaluator, bool fits) {
    TrainingPlan out;
    for_each_plan(evaluator.space(), [&](const TrainingPlan& plan) {
      const auto found = evaluator.evaluate(plan);
      if (!found || found->fits != fits) return true;
      out = plan;
      return false;
    });
    return out;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Planner, Wrong, "plan-wrong", "0.1.0", "breaks the contract of planners", nullptr)
