// SPDX-License-Identifier: Apache-2.0
// plan-faulty: a planner that returns what PLAN_FAULT names, because planners have no options in a search.
#include <cstdlib>
#include <string>

#include "triax/planner.hpp"
#include "triax/plugin.hpp"

using namespace triax; // NOLINT(google-build-using-namespace)

namespace {

class FaultyPlanner final : public Planner {
 public:
  explicit FaultyPlanner(const PluginContext&) {}

  std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) override {
    const char* const named = std::getenv("PLAN_FAULT");
    const std::string fault = named ? named : "";
    TrainingPlan plan;
    plan.data = evaluator.space().ranks;
    if (fault == "outside") plan.tensor = 3;
    if (fault == "refused") plan.micro = evaluator.space().batch; // more than a data rank has
    return std::vector<TrainingPlan>(static_cast<std::size_t>(fault == "many" ? count + 1 : 1), plan);
  }
};

} // namespace

TRIAX_PLUGIN(triax::Planner, FaultyPlanner, "plan-faulty", "0.1.0", "returns invalid plans", nullptr)
