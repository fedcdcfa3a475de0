// SPDX-License-Identifier: Apache-2.0
// The evaluator of a search: times of a plan from the tables of layers and schedules, and the cluster; memory from the
// dry run of preflight (plan_memory.hpp).
//
// Threads: the main thread. Ownership: borrows request, traits and log. Errors: Error of the plugins.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "cost/code_traits.hpp"
#include "cost/collective_cost.hpp"
#include "cost/operation_cost.hpp"
#include "cost/posted_pipeline.hpp"
#include "plan/layer_table.hpp"
#include "plan/plan_acceptance.hpp"
#include "plan/plan_memory.hpp"
#include "plan/search_request.hpp"
#include "plan/shape_schedules.hpp"
#include "plan/stage_classes.hpp"
#include "plan/stage_split.hpp"
#include "triax/planner.hpp"

namespace triax::plan {

struct StageSums;

class PlanCosts final : public PlanEvaluator {
 public:
  /// `schedules`: of an evaluator with the same schedulers and model, which must outlive this one; null: own ones.
  PlanCosts(const SearchRequest& request, const cost::CodeTraits& code, Log& log, ScheduleTable* schedules = nullptr);
  ~PlanCosts() override;

  const PlanSpace& space() const override { return request_.space; }
  std::optional<PlanBounds> bounds(const TrainingPlan& plan) override;
  std::optional<PlanTime> time(const TrainingPlan& plan) override;
  std::optional<PlanEvaluation> evaluate(const TrainingPlan& plan) override;
  std::uint64_t memory_limit() const override { return request_.memory_limit; }
  bool is_interrupted() override { return is_interrupted_ && is_interrupted_(); }
  /// Asked by planners; may show progress.
  void set_is_interrupted(std::function<bool()> asked) { is_interrupted_ = std::move(asked); }
  /// Bytes of the rank that needs most, also of a plan that does not fit. Empty: a plugin refuses the plan.
  std::optional<std::uint64_t> exact_bytes(const TrainingPlan& plan);
  /// Why plugins refuse the plan.
  Refusals refusals(const TrainingPlan& plan);
  /// See PlanAcceptance.
  Refusals cheap_refusals() const { return acceptance_.cheap_refusals(); }
  /// Blocks of each stage; empty: even. The plan must be one that bounds() accepts.
  Split split(const TrainingPlan& plan) { return plan.balanced ? splits_.find(split_settings(plan)).blocks : Split(); }
  /// From now on, balanced plans with the stages, microbatch and layers of this one have the split.
  void set_split(const TrainingPlan& plan, const Split& split);
  /// Plans whose schedule was simulated.
  std::size_t timed() const { return simulated_; }
  ScheduleTable& schedules() { return schedules_; }

 private:
  PipelineShape shape_of(const TrainingPlan& plan) const;
  /// Throws Error if a planner asks for a plan that is not in the space.
  static void require_inside(bool is_inside, const TrainingPlan& plan);
  /// Whether balanced stages are others than even ones, or the space has no even ones.
  bool is_split_accepted(const TrainingPlan& plan);
  SplitSettings split_settings(const TrainingPlan& plan);
  /// The blocks of a group, the last of which R repeats; 0: the code or the plan has no R.
  int recompute_group(const TrainingPlan& plan) const {
    return code_.recomputes_early ? layers_.blocks_of_group(plan.recompute) : 0;
  }
  bool has(const TrainingPlan& plan, const char* shard) const;
  bool shards(const TrainingPlan& plan) const { return plan.data > 1 && !has(plan, "none"); }

  PlanTime simulated(const TrainingPlan& plan, const StageSums& sums);
  StageSums make_sums(const TrainingPlan& plan, const PipelineShape& shape);
  /// Null: a plugin refuses the plan, or its balanced stages are even. Valid until the next call with such stages.
  const StageSums* find_sums(const TrainingPlan& plan, const PipelineShape& shape);
  cost::PostedTimes posted_times(const TrainingPlan& plan, const StageSums& sums);
  cost::LinkTime link_time(const TrainingPlan& plan, const StageSums& sums, int stage) const;
  cost::RowsOfShape rows_of(const TrainingPlan& plan);
  /// The passes of a plan without gathers of weights, also with transfers that take no time.
  struct Passes {
    cost::PostedPasses sent, untransferred;
  };
  Passes& passes_of(const TrainingPlan& plan, const cost::PostedTimes& times);
  double reduce_s(const TrainingPlan& plan, double parameters) const;
  double gather_s(const TrainingPlan& plan, double parameters) const;
  double update_s(const TrainingPlan& plan, double parameters) const;
  double tied_s(const TrainingPlan& plan, const std::vector<TieRanks>& ties);
  /// Parameters of a rank: all, and those whose whole gradients, and whole weights, it needs at once at least.
  struct RankParameters {
    double all = 0, accumulated = 0, gathered = 0;
  };
  double state_bytes(const TrainingPlan& plan, const RankParameters& parameters) const;
  /// At least, of the rank that needs most.
  std::uint64_t schedule_bytes(const TrainingPlan& plan, const PipelineShape& shape, const StageSums& sums);
  /// The same of each pipeline rank: what the schedule keeps of each stage, and the states.
  std::vector<double> rank_bytes(const TrainingPlan& plan, const PipelineShape& shape, const StageSums& sums);
  void drop_ties(const TrainingPlan& plan, StageSums& sums);
  bool crosses_nodes(int from, int to, int stride) const;
  cost::GroupShape data_group(const TrainingPlan& plan) const;

  const SearchRequest& request_;
  const cost::Cluster& cluster_;
  const cost::CodeTraits code_;
  LayerTable layers_;
  std::optional<ScheduleTable> own_schedules_;
  ScheduleTable& schedules_;
  BalancedSplits splits_;
  PlanAcceptance acceptance_;
  PlanMemory memory_;
  const cost::OperationCost operations_;
  const cost::CollectiveCost collectives_;
  const OptimizerTraits optimizer_;
  struct LastBounds; // see plan_bounds.hpp
  struct RankBounds;
  struct StageBounds;
  LastBounds& bounded_group(const TrainingPlan& plan);
  StageBounds stage_bounds(const TrainingPlan& plan, const StageMapping& mapping);
  std::vector<RankBounds> bounds_of_ranks(const TrainingPlan& plan, const StageClasses& classes,
                                          const StageMapping& mapping);
  const StageClasses& even_classes(const StageMapping& mapping);
  /// Sums over all layers, for a microbatch. The inputs that blocks keep with full recomputation are not counted.
  struct LayerTotals {
    double parameters = 0, kept = 0;
  };
  const LayerTotals& totals(const TrainingPlan& plan);
  const std::vector<LayerLoad>& loads(const TrainingPlan& plan, Recompute how) {
    return layers_.loads(plan.tensor, plan.micro, splits_positions(plan), how);
  }
  /// The bounds of a balanced plan that does not fit with any split, which is not searched then. Else empty.
  std::optional<PlanBounds> bounds_of_any_split(const TrainingPlan& plan, const LayerTotals& all) const;
  std::unique_ptr<LastBounds> last_bounds_;
  std::map<const StageMapping*, StageClasses> even_classes_;
  std::map<std::tuple<int, std::int64_t, bool, Recompute>, LayerTotals> totals_;
  /// The last sums of even and of balanced stages: plans that differ in what data ranks divide follow each other.
  struct LastSums;
  std::array<std::unique_ptr<LastSums>, 2> last_sums_;
  std::map<TrainingPlan, Passes> passes_;                 // with the first value of shard
  std::map<TrainingPlan, std::optional<PlanTime>> timed_; // empty: refused, or too large
  std::size_t simulated_ = 0;
  std::map<TrainingPlan, std::optional<PlanEvaluation>> evaluated_;
  std::function<bool()> is_interrupted_;
};

} // namespace triax::plan
