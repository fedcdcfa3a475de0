// SPDX-License-Identifier: Apache-2.0
// Planners: they search the layouts and settings of a run for those that train fastest on a cluster (`triax plan`).
//
// Threads: the main thread; a planner uses no device and no network. Ownership: values; the evaluator outlives the
// call. Blocking: search() computes until it has an answer, or PlanEvaluator::is_interrupted() is true. Errors: Error.
//
// The core gives a planner the space of plans and an evaluator, which knows the model, the schedules and the cluster.
// The planner decides which plans it evaluates. What it returns is evaluated again by the core, so a planner cannot
// report a time or a size that is not that of the plan.
// The contract is at the end of this file.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "triax/export.hpp"
#include "triax/extension.hpp"
#include "triax/recompute.hpp"

namespace triax {

/// Version of the interface; docs/plugins/changelog.md has its history.
inline constexpr std::uint32_t kPlannerInterface = 1;

/// One choice of all settings that are searched.
struct TrainingPlan {
  int pipeline = 1, tensor = 1, data = 1; // ranks of the axes; their product is PlanSpace::ranks
  std::int64_t micro = 1;                 // sequences of a microbatch, b
  int chunks = 1;                         // stages per pipeline rank, v
  int schedule = 0;                       // index in PlanSpace::schedules
  Recompute recompute = Recompute::none;  // memory.recompute of all stages
  bool sequence = false;                  // sequence parallelism over the tensor ranks
  int shard = 0;                          // index in PlanSpace::shards
  bool balanced = false;                  // stages of about the same time, instead of about the same number of blocks
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy sees a literal 0
  auto operator<=>(const TrainingPlan&) const = default;
  /// Microbatches of a step on each data rank.
  std::int64_t microbatches(std::int64_t batch) const { return batch / micro / data; }
};

/// The values that each setting may take, at least one, and the sizes of the run. Numbers and `recompute` are
/// ascending; other values have the order of the search's request.
struct PlanSpace {
  int ranks = 1;
  std::int64_t batch = 1;   // sequences of a step over all ranks, B
  int blocks = 1;           // transformer layers of the model
  int devices_per_node = 1; // of the cluster
  std::vector<int> pipeline, tensor, data, chunks;
  std::vector<std::int64_t> micro;
  std::vector<Recompute> recompute;
  std::vector<bool> sequence;
  /// Names of scheduler plugins, and values of `optimizer.shard`. A plan has an index of the list.
  /// @{
  std::vector<std::string> schedules, shards;
  /// @}
  std::vector<bool> balanced = {false};
};

/// Time of a step in seconds, by what it is spent on.
struct PlanTime {
  double compute = 0;   // operations of the passes, mean of the pipeline ranks
  double imbalance = 0; // what the busiest pipeline rank computes more
  double bubble = 0;    // the pipeline rank that ends last waits, even if transfers take no time
  double tensor = 0;    // collectives over tensor ranks, mean of the pipeline ranks
  double pipeline = 0;  // transfers between stages, as far as passes wait for them
  double data = 0;      // collectives over data ranks that passes do not hide, and sums of tied parameters
  double optimizer = 0; // update of the parameters
  double fixed = 0;     // data, logging, launcher
  /// Time of the step.
  double step() const { return compute + imbalance + bubble + tensor + pipeline + data + optimizer + fixed; }
};

/// Lower bounds of a plan's time and memory.
struct PlanBounds {
  double step_s = 0;       // no more than PlanTime::step()
  std::uint64_t bytes = 0; // no more than PlanEvaluation::bytes
};

/// The time and memory of a plan.
struct PlanEvaluation {
  bool fits = false;       // into the memory of a device
  std::uint64_t bytes = 0; // of the rank that needs most; exact if the plan fits, else a lower bound
  PlanTime time{};         // zeros if the plan does not fit
};

/// The core's answers to a planner. They throw Error for a plan that is not in the space.
class TRIAX_API PlanEvaluator {
 public:
  virtual ~PlanEvaluator();
  /// The same in each call.
  virtual const PlanSpace& space() const = 0;
  /// Microseconds. The time of a plan that does not fit may be too low. Empty: a plugin of the run refuses the plan,
  /// or the plan is balanced and has the same stages as an unbalanced plan of the space.
  virtual std::optional<PlanBounds> bounds(const TrainingPlan& plan) = 0;
  /// The predicted step. Simulates the schedule, in about a millisecond for a long pipeline; the answer is kept. Empty:
  /// as bounds(), or the activations in flight alone exceed the memory.
  virtual std::optional<PlanTime> time(const TrainingPlan& plan) = 0;
  /// The predicted step, its memory, and whether it fits; several milliseconds. The answer is kept. Empty:
  /// as bounds().
  virtual std::optional<PlanEvaluation> evaluate(const TrainingPlan& plan) = 0;
  /// Bytes that a plan may need on each device.
  virtual std::uint64_t memory_limit() const = 0;
  /// True after Ctrl-C: return the plans found so far.
  virtual bool is_interrupted() = 0;
};

/// A plugin of the kind planner: searches the space.
class TRIAX_API Planner : public Extensible {
 public:
  using Interface = Planner;
  static constexpr const char* kKind = "planner";
  static constexpr std::uint32_t kInterfaceVersion = kPlannerInterface;

  virtual ~Planner();
  /// At most `count` plans of the space that fit, each once, fastest first. Empty: no plan fits.
  virtual std::vector<TrainingPlan> search(PlanEvaluator& evaluator, int count) = 0;
};

/// Calls `visit(plan)` for each plan of a space whose sizes match: the ranks of the axes are all ranks, microbatches
/// are whole, each stage can have a block. Sequence parallelism needs tensor ranks, sharding needs data ranks, and
/// balanced stages need pipeline ranks: without them, only the first value is visited. Ends if `visit` returns false.
template <class Visit>
void for_each_plan(const PlanSpace& space, Visit visit) {
  TrainingPlan plan;
  const auto settings = [&]() {
    for (std::size_t recompute = 0; recompute < space.recompute.size(); ++recompute)
      for (std::size_t sequence = 0; sequence < space.sequence.size(); ++sequence)
        for (std::size_t shard = 0; shard < space.shards.size(); ++shard)
          for (std::size_t balanced = 0; balanced < space.balanced.size(); ++balanced) {
            if ((plan.tensor == 1 && sequence > 0) || (plan.data == 1 && shard > 0)) continue;
            if (plan.pipeline == 1 && balanced > 0) continue;
            plan.recompute = space.recompute[recompute];
            plan.sequence = space.sequence[sequence];
            plan.shard = static_cast<int>(shard);
            plan.balanced = space.balanced[balanced];
            if (!visit(static_cast<const TrainingPlan&>(plan))) return false;
          }
    return true;
  };
  const auto schedules = [&]() {
    for (const std::int64_t micro : space.micro) {
      if (space.batch % micro != 0 || space.batch / micro % plan.data != 0) continue;
      plan.micro = micro;
      for (const int chunks : space.chunks) {
        if (std::int64_t{plan.pipeline} * chunks > space.blocks) continue;
        plan.chunks = chunks;
        for (std::size_t schedule = 0; schedule < space.schedules.size(); ++schedule) {
          plan.schedule = static_cast<int>(schedule);
          if (!settings()) return false;
        }
      }
    }
    return true;
  };
  for (const int pipeline : space.pipeline)
    for (const int tensor : space.tensor)
      for (const int data : space.data) {
        if (std::int64_t{pipeline} * tensor * data != space.ranks) continue;
        plan.pipeline = pipeline;
        plan.tensor = tensor;
        plan.data = data;
        if (!schedules()) return;
      }
}

} // namespace triax

// Contract
//
// [P1] search() returns at most `count` plans, each once, and each one that for_each_plan() visits for the space.
// [P2] It calls bounds(), time() and evaluate() for such plans only.
// [P3] evaluate() says of each returned plan that it fits.
// [P4] A plan for which bounds(), time() or evaluate() has an empty answer is not returned. An empty answer is not an
//      error.
// [P5] The returned plans are in ascending order of PlanTime::step().
// [P6] search() returns no plan, and does not throw, if the space has no plan or none fits.
// [P7] If each setting has one value and this plan fits, search() returns it.
// [P8] All calls and objects return equal plans for an equal space, count and answers, if they are not stopped.
// [P9] search() calls bounds(), time() and evaluate() each at most as often as the space has plans.
// [P10] After is_interrupted() has become true, search() calls bounds() at most 1024 times, and time() and
//       evaluate() together at most 16 times. It returns plans by P1 to P5, and at least one if evaluate() has found
//       one that fits.
// [P11] After its destruction, a planner has no thread and no open file left.
