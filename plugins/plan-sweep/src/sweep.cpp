// SPDX-License-Identifier: Apache-2.0
// plan-sweep: every plan of the space, in the order of its lower bound. A plan is timed only if its bound, and its
// memory counted only if its time, could be among the best. So the result is that of evaluating all.
#include <algorithm>
#include <cstddef>
#include <triax/planner.hpp>
#include <triax/plugin.hpp>
#include <utility>
#include <vector>

namespace {
using namespace triax;

class Sweep final : public Planner {
 public:
  std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) override {
    std::vector<Candidate> candidates = bounded(evaluator);
    std::vector<Candidate> best; // fastest first
    for (const Candidate& candidate : candidates) {
      const bool is_full = best.size() == static_cast<std::size_t>(count);
      if (evaluator.is_interrupted() || (is_full && candidate.step_s > best.back().step_s)) break;
      const std::optional<PlanTime> time = evaluator.time(candidate.plan);
      if (!time) continue;
      const Candidate timed{time->step(), candidate.number, candidate.plan};
      if (is_full && !is_before(timed, best.back())) continue;
      const std::optional<PlanEvaluation> found = evaluator.evaluate(candidate.plan);
      if (!found || !found->fits) continue;
      best.insert(std::ranges::upper_bound(best, timed, is_before), timed);
      if (is_full) best.pop_back();
    }
    std::vector<TrainingPlan> out;
    out.reserve(best.size());
    for (const Candidate& of : best) out.push_back(of.plan);
    return out;
  }

 private:
  struct Candidate {
    double step_s = 0;      // first its bound, then its time
    std::size_t number = 0; // in the space: of equal times, the first plan is better
    TrainingPlan plan;
  };
  static bool is_before(const Candidate& one, const Candidate& other) {
    return std::pair(one.step_s, one.number) < std::pair(other.step_s, other.number);
  }

  /// The plans that may fit, in the order of their bounds.
  static std::vector<Candidate> bounded(PlanEvaluator& evaluator) {
    constexpr std::size_t kBetweenStops = 1024;
    std::vector<Candidate> out;
    std::size_t number = 0;
    for_each_plan(evaluator.space(), [&](const TrainingPlan& plan) {
      const std::optional<PlanBounds> bounds = evaluator.bounds(plan);
      if (bounds && bounds->bytes <= evaluator.memory_limit()) out.push_back({bounds->step_s, number, plan});
      ++number;
      return number % kBetweenStops != 0 || !evaluator.is_interrupted();
    });
    std::ranges::sort(out, is_before);
    return out;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Planner, Sweep, "plan-sweep", "0.1.0", "every plan, pruned by lower bounds", nullptr)
