// SPDX-License-Identifier: Apache-2.0
// plan-template: data ranks first. Of the plans with most data ranks, it returns the fastest that fit; if none fits, it
// continues with fewer data ranks. So it evaluates a part of the space, and may miss the fastest plan.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <triax/planner.hpp>
#include <triax/plugin.hpp>
#include <vector>

namespace {
using namespace triax;

class DataFirst final : public Planner {
 public:
  std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) override {
    std::vector<TrainingPlan> out;
    for (const auto& [data, plans] : by_data_ranks(evaluator)) {
      for (const Timed& of : fastest_first(evaluator, plans)) {
        if (evaluator.is_interrupted() || out.size() == static_cast<std::size_t>(count)) return out;
        const std::optional<PlanEvaluation> found = evaluator.evaluate(of.plan);
        if (found && found->fits) out.push_back(of.plan);
      }
      if (!out.empty()) return out;
    }
    return out;
  }

 private:
  struct Timed {
    double step_s;
    TrainingPlan plan;
  };
  using ByDataRanks = std::map<int, std::vector<TrainingPlan>, std::greater<>>; // most data ranks first

  // The plans that may fit. bounds() takes microseconds, so it is called for each plan of the space. It has no answer
  // for a plan that a plugin of the run refuses.
  static ByDataRanks by_data_ranks(PlanEvaluator& evaluator) {
    ByDataRanks out;
    for_each_plan(evaluator.space(), [&](const TrainingPlan& plan) {
      const std::optional<PlanBounds> bounds = evaluator.bounds(plan);
      if (bounds && bounds->bytes <= evaluator.memory_limit()) out[plan.data].push_back(plan);
      return !evaluator.is_interrupted(); // Ctrl-C ends the search
    });
    return out;
  }

  // time() simulates the schedule. evaluate() also counts the memory, which takes longer: search() calls it in this
  // order, until it has enough plans.
  static std::vector<Timed> fastest_first(PlanEvaluator& evaluator, const std::vector<TrainingPlan>& plans) {
    std::vector<Timed> out;
    for (const TrainingPlan& plan : plans) {
      if (evaluator.is_interrupted()) break;
      if (const std::optional<PlanTime> time = evaluator.time(plan)) out.push_back({time->step(), plan});
    }
    std::ranges::stable_sort(out, {}, &Timed::step_s); // equal times stay in the order of the space
    return out;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Planner, DataFirst, "plan-template", "0.1.0", "data ranks first", nullptr)
