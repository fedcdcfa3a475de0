// SPDX-License-Identifier: Apache-2.0
// sched-planted: all forwards, then all backwards, with one fault, which the option `fault` names. The conformance
// suite must find each.
#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <string_view>
#include <triax/plugin.hpp>
#include <triax/scheduler.hpp>
#include <utility>
#include <vector>

namespace triax::sched_planted {

namespace {

constexpr triax_option kOptions[] = {
    option_int("wave", "2", 1, std::numeric_limits<double>::infinity(), "must be within its limits"),
    option_int("group", "1", 1, 100, "has no effect, unless the fault is in one value"),
    option_string("fault", "none",
                  "none|no_keys|throws|refuses_all|counts_calls|per_object|per_rank|stage_map|empty_rank|missing|"
                  "twice|twice_late|descending|weight_first|deadlock|one_value|constructor",
                  "what is wrong with this scheduler"),
};

class PlantedScheduler final : public Scheduler {
 public:
  explicit PlantedScheduler(const PluginContext& context)
      : fault_(context.options.text("fault")), group_(context.options.integer("group")), rank_(context.rank) {
    if (context.options.integer("wave") < 1) throw Error("wave is outside its limits");
    if (has("constructor") && group_ == 100) throw Error("the group is too large");
    static std::atomic<int> objects = 0;
    number_ = objects++;
  }

  Refusals supports(const PipelineShape& shape) const override {
    if (shape.chunks == 1 && !has("refuses_all")) return {};
    if (has("throws")) throw Error("gr\xF6\xDF: not UTF-8");
    std::vector<std::string> keys = {"parallel.chunks"};
    if (has("no_keys")) keys.clear();
    return make_refusal(ErrorCode::kUnsupported, keys, "parallel.chunks = {}: must be 1", shape.chunks);
  }

  Schedule rows(const PipelineShape& shape) const override {
    std::vector<int> stages = one_stage_per_rank(shape);
    if (has("stage_map") && shape.pipeline == 5) stages.back() = shape.pipeline;
    if (has("empty_rank") && shape.pipeline == 5) stages.back() = 0;
    Schedule out(shape, std::move(stages));
    for (int rank = 0; rank < shape.pipeline; ++rank) fill(out.row(rank), shape, rank);
    plant(out, shape);
    return out;
  }

 private:
  bool has(std::string_view fault) const { return fault_ == fault; }

  void fill(std::vector<Action>& row, const PipelineShape& shape, int rank) const {
    for (int i = 0; i < shape.microbatches; ++i) row.push_back(forward(rank, i));
    for (int i = 0; i < shape.microbatches; ++i) {
      const int microbatch = has("descending") ? shape.microbatches - 1 - i : i;
      if (!has("weight_first")) {
        row.push_back(backward(rank, microbatch));
        continue;
      }
      row.push_back(backward_weight(rank, microbatch));
      row.push_back(backward_input(rank, microbatch));
    }
  }

  void plant(Schedule& schedule, const PipelineShape& shape) const {
    std::vector<Action>& last = schedule.row(shape.pipeline - 1);
    const auto m = static_cast<std::size_t>(shape.microbatches);
    const bool is_planted = (has("per_object") && number_ % 2 == 1) || (has("per_rank") && rank_ != 0) ||
                            (has("counts_calls") && ++calls_ % 5 == 0);
    if (is_planted && m > 1) std::swap(last[0], last[1]);
    if (has("missing") && m % static_cast<std::size_t>(shape.pipeline) != 0) last.pop_back();
    if ((has("twice") && m == 7) || (has("twice_late") && m == 48)) last.push_back(last.back());
    if (has("one_value") && group_ == 3) last.pop_back();
    if (has("deadlock") && shape.pipeline > 1 && m > 2) { // the first rank waits for a gradient that needs its forward
      std::vector<Action>& first = schedule.row(0);
      std::rotate(first.begin() + 1, first.begin() + static_cast<std::ptrdiff_t>(m),
                  first.begin() + static_cast<std::ptrdiff_t>(m) + 1);
    }
  }

  const std::string fault_;
  const std::int64_t group_;
  const int rank_;
  int number_ = 0;
  mutable std::atomic<int> calls_ = 0;
};

} // namespace

} // namespace triax::sched_planted

TRIAX_PLUGIN(triax::Scheduler, triax::sched_planted::PlantedScheduler, "sched-planted", "0.1.0",
             "a scheduler with a planted fault", triax::sched_planted::kOptions)
