// SPDX-License-Identifier: Apache-2.0
// plan-sweep: every plan of the space, in the order of its lower bound. A plan is timed only if its bound, and its
// memory counted only if its time, is below that of the last plan that is returned. So the result is that of evaluating
// all.
#include <algorithm>
#include <cstddef>
#include <triax/planner.hpp>
#include <triax/plugin.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace {
using namespace triax;

class Sweep final : public Planner {
 public:
  std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) override {
    std::vector<Candidate> queue = bounded(evaluator); // a heap: the best is its first
    std::vector<TrainingPlan> best;
    const auto pop = [&queue] {
      std::ranges::pop_heap(queue, is_after);
      const Candidate out = queue.back();
      queue.pop_back();
      return out;
    };
    while (!queue.empty() && best.size() < static_cast<std::size_t>(count)) {
      if (evaluator.is_interrupted()) return with_timed(evaluator, std::move(queue), std::move(best), count);
      Candidate candidate = pop();
      if (candidate.is_timed) { // no other plan is faster
        if (fits(evaluator, candidate.plan)) best.push_back(candidate.plan);
        continue;
      }
      const std::optional<PlanTime> time = evaluator.time(candidate.plan);
      if (!time) continue;
      candidate.step_s = time->step();
      candidate.is_timed = true;
      queue.push_back(candidate);
      std::ranges::push_heap(queue, is_after);
    }
    return best;
  }

 private:
  struct Candidate {
    double step_s = 0;      // first its bound, then its time
    std::size_t number = 0; // in the space: of equal times, the first plan is better
    TrainingPlan plan;
    bool is_timed = false;
  };
  /// A bound comes before an equal time: it may become the time of a plan with a lower number.
  static bool is_after(const Candidate& one, const Candidate& other) {
    return std::tuple(one.step_s, one.is_timed, one.number) > std::tuple(other.step_s, other.is_timed, other.number);
  }

  static bool fits(PlanEvaluator& evaluator, const TrainingPlan& plan) {
    const std::optional<PlanEvaluation> found = evaluator.evaluate(plan);
    return found && found->fits;
  }

  /// After a stop: the fastest of the plans that were timed, as far as few evaluations show that they fit.
  static std::vector<TrainingPlan> with_timed(PlanEvaluator& evaluator, std::vector<Candidate> queue,
                                              std::vector<TrainingPlan> best, int count) {
    constexpr int kMaxEvaluations = 15;
    std::erase_if(queue, [](const Candidate& of) { return !of.is_timed; });
    std::ranges::sort(queue, is_before);
    int evaluations = 0;
    for (const Candidate& of : queue) {
      if (best.size() == static_cast<std::size_t>(count) || ++evaluations > kMaxEvaluations) break;
      if (fits(evaluator, of.plan)) best.push_back(of.plan);
    }
    return best;
  }
  static bool is_before(const Candidate& one, const Candidate& other) { return is_after(other, one); }

  /// The plans that may fit, as a heap.
  static std::vector<Candidate> bounded(PlanEvaluator& evaluator) {
    constexpr std::size_t kBetweenStops = 1024;
    std::vector<Candidate> out;
    std::size_t number = 0;
    for_each_plan(evaluator.space(), [&](const TrainingPlan& plan) {
      const std::optional<PlanBounds> bounds = evaluator.bounds(plan);
      if (bounds && bounds->bytes <= evaluator.memory_limit()) out.push_back({bounds->step_s, number, plan, false});
      ++number;
      return number % kBetweenStops != 0 || !evaluator.is_interrupted();
    });
    std::ranges::make_heap(out, is_after);
    return out;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Planner, Sweep, "plan-sweep", "0.1.0", "every plan, pruned by lower bounds", nullptr)
