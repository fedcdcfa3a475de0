// SPDX-License-Identifier: Apache-2.0
// plan-planted: evaluates every plan, with one fault, which the option `fault` names. The conformance suite must find
// each.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <triax/planner.hpp>
#include <triax/plugin.hpp>
#include <utility>
#include <vector>

namespace triax::plan_planted {

namespace {

constexpr triax_option kOptions[] = {
    option_string("fault", "none",
                  "none|too_many|twice|outside|asks_outside|asks_smaller|asks_without_plans|unfit|refused|refused_"
                  "throws|slowest_first|guesses|"
                  "skips_one|per_object|per_call|asks_twice|ignores_stop|empty_stop|keeps_file|keeps_thread",
                  "what is wrong with this planner"),
};

class PlantedPlanner final : public Planner {
 public:
  explicit PlantedPlanner(const PluginContext& context) : fault_(context.options.text("fault")) {
    static std::atomic<int> objects = 0;
    number_ = objects++;
  }

  std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) override {
    ++calls_;
    if (has("keeps_thread")) std::thread([] { ::pause(); }).detach();
    if (has("keeps_file")) file_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    std::vector<Timed> found = evaluated(evaluator);
    std::ranges::stable_sort(found, {}, &Timed::step_s);
    if (has("slowest_first")) std::ranges::reverse(found);
    if (found.size() > 1 && ((has("per_object") && number_ % 2 == 1) || (has("per_call") && calls_ % 2 == 0)))
      found.erase(found.begin());
    const auto most = static_cast<std::size_t>(count) + (has("too_many") ? 1 : 0);
    std::vector<TrainingPlan> out;
    for (const Timed& of : found)
      if (out.size() < most) out.push_back(of.plan);
    if (has("twice") && out.size() > 1) out[1] = out[0];
    if (has("outside") && !out.empty()) out[0].micro = 7;
    if (has("guesses") && out.empty()) out.push_back({});
    if (has("empty_stop") && evaluator.is_interrupted()) out.clear();
    return out;
  }

 private:
  struct Timed {
    double step_s;
    TrainingPlan plan;
  };
  bool has(std::string_view fault) const { return fault_ == fault; }

  std::vector<Timed> evaluated(PlanEvaluator& evaluator) const {
    std::vector<Timed> out;
    if (has("asks_outside")) evaluator.bounds({.micro = 7});
    bool has_plans = false;
    for_each_plan(evaluator.space(), [&](const TrainingPlan& plan) {
      has_plans = true;
      if (evaluator.is_interrupted() && !has("ignores_stop")) return false;
      if (has("skips_one") && plan.schedule + plan.shard == 0 && plan.recompute == Recompute::full) return true;
      if (has("asks_twice")) evaluator.evaluate(plan);
      const std::optional<PlanEvaluation> answer = evaluator.evaluate(plan);
      if (has("asks_smaller") && answer && !answer->fits) {
        TrainingPlan smaller = plan;
        smaller.micro /= 2; // which may be none of PlanSpace::micro
        evaluator.bounds(smaller);
      }
      if (has("refused_throws") && !answer) throw Error("a plan is refused");
      const bool is_taken = answer ? answer->fits || has("unfit") : has("refused");
      if (is_taken) out.push_back({answer ? answer->time.step() : 0, plan});
      return true;
    });
    if (has("asks_without_plans") && !has_plans) evaluator.bounds({});
    return out;
  }

  const std::string fault_;
  int number_ = 0, calls_ = 0, file_ = -1;
};

} // namespace

} // namespace triax::plan_planted

TRIAX_PLUGIN(triax::Planner, triax::plan_planted::PlantedPlanner, "plan-planted", "0.1.0",
             "a planner with a planted fault", triax::plan_planted::kOptions)
