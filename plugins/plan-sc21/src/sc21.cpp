// SPDX-License-Identifier: Apache-2.0
// plan-sc21: the heuristics of Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
// Megatron-LM", SC'21, section 3.
//
// Takeaway 1: tensor parallelism up to the GPUs of a node, then pipeline parallelism. Takeaway 2: as few tensor and
// pipeline ranks as memory allows; data parallelism for all other ranks. Takeaway 3: the microbatch is that for which
// equation 1 is smallest: (b'/b + p - 1) (t_f(b) + t_b(b)), with b' = B / d.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <triax/planner.hpp>
#include <triax/plugin.hpp>
#include <utility>
#include <vector>

namespace {
using namespace triax;

/// A plan that fits, its time by equation 1, and that of its step.
struct Judged {
  double seconds = 0, step_s = 0;
  TrainingPlan plan;
};

double equation_1(const TrainingPlan& plan, const PlanEvaluation& evaluation, std::int64_t batch) {
  const auto microbatches = static_cast<double>(plan.microbatches(batch));
  const double pass_s = (evaluation.time.compute + evaluation.time.tensor) / microbatches; // t_f(b) + t_b(b)
  return (microbatches + plan.pipeline - 1) * pass_s;
}

/// The schedule of the paper without chunks; the first, if the space does not have it.
int schedule_of(const PlanSpace& space) {
  const auto found = std::ranges::find(space.schedules, "sched-1f1b");
  return found == space.schedules.end() ? 0 : static_cast<int>(found - space.schedules.begin());
}

class Sc21 final : public Planner {
 public:
  std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) override {
    for (const auto& [model_ranks, tensors] : layouts(evaluator.space())) {
      for (const int tensor : tensors) {
        if (evaluator.is_interrupted()) return {};
        std::vector<Judged> found = judged(evaluator, tensor, static_cast<int>(model_ranks / tensor));
        if (found.empty()) continue;
        // Fewer tensor ranks, or more ranks of the model, cost time.
        found.resize(std::min(found.size(), static_cast<std::size_t>(count)));
        return fastest_first(std::move(found));
      }
    }
    return {};
  }

 private:
  static std::vector<TrainingPlan> fastest_first(std::vector<Judged> found) {
    std::ranges::stable_sort(found, {}, &Judged::step_s);
    std::vector<TrainingPlan> out;
    out.reserve(found.size());
    for (const Judged& of : found) out.push_back(of.plan);
    return out;
  }

  /// By tensor x pipeline ranks, ascending: the numbers of tensor ranks of one node, most first.
  static std::map<std::int64_t, std::vector<int>> layouts(const PlanSpace& space) {
    std::map<std::int64_t, std::vector<int>> out;
    for (auto tensor = space.tensor.rbegin(); tensor != space.tensor.rend(); ++tensor)
      for (const int pipeline : space.pipeline)
        if (*tensor <= space.devices_per_node || space.tensor.size() == 1)
          out[std::int64_t{*tensor} * pipeline].push_back(*tensor);
    return out;
  }

  /// The plans of a layout that fit, without what the paper does not have; the best by equation 1 first.
  static std::vector<Judged> judged(PlanEvaluator& evaluator, int tensor, int pipeline) {
    const PlanSpace& space = evaluator.space();
    PlanSpace papers = space;
    papers.tensor = {tensor};
    papers.pipeline = {pipeline};
    papers.chunks = {space.chunks.front()};
    papers.recompute = {space.recompute.back()}; // full, unless --fix has another
    papers.sequence = {space.sequence.front()};
    papers.shards = {space.shards.front()};
    papers.balanced = {space.balanced.front()};
    const int schedule = schedule_of(space);
    std::vector<Judged> out;
    for_each_plan(papers, [&](const TrainingPlan& plan) {
      if (evaluator.is_interrupted()) return false;
      if (plan.schedule != schedule) return true;
      const std::optional<PlanBounds> bounds = evaluator.bounds(plan);
      if (!bounds || bounds->bytes > evaluator.memory_limit()) return true;
      const std::optional<PlanEvaluation> found = evaluator.evaluate(plan);
      if (found && found->fits) out.push_back({equation_1(plan, *found, space.batch), found->time.step(), plan});
      return true;
    });
    std::ranges::stable_sort(out, {}, &Judged::seconds);
    return out;
  }
};

} // namespace

TRIAX_PLUGIN(triax::Planner, Sc21, "plan-sc21", "0.1.0", "the heuristics of Narayanan et al., SC'21", nullptr)
