// SPDX-License-Identifier: Apache-2.0
// Spaces of plans, and an evaluator whose answers follow a formula. It counts the calls of a planner.
//
// Ownership: an evaluator refers to its table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "triax/planner.hpp"

namespace triax::conformance {

/// All plans of a space with their times and sizes, fastest first.
class PlanTable {
 public:
  struct Row {
    TrainingPlan plan;
    PlanTime time;
    std::uint64_t bytes = 0;
  };

  PlanTable(std::string name, PlanSpace space);

  const std::string& name() const { return name_; }
  const PlanSpace& space() const { return space_; }
  const std::vector<Row>& rows() const { return rows_; }
  /// Position in rows(); their number if the plan is not in the space.
  std::size_t find(const TrainingPlan& plan) const;
  /// A memory limit into which a fraction of the plans fits.
  std::uint64_t limit_of(double fraction) const;

 private:
  std::string name_;
  PlanSpace space_;
  std::vector<Row> rows_;
  std::vector<std::size_t> by_plan_; // positions in rows_, in the order of plans
};

/// A space of 16 ranks with more plans than a stopped search may look at.
PlanTable large_space();
/// Spaces of different sizes: also of 12 ranks, and of settings that `--fix` has reduced.
std::vector<PlanTable> some_spaces();
/// One value of each setting.
std::vector<PlanTable> spaces_of_one_plan();
/// The product of the ranks of no plan is the number of ranks.
PlanTable empty_space();

/// The function from which on the answers for a refused plan are empty.
enum class Refused { never, in_bounds, in_time, in_evaluate };

/// Calls of a planner.
struct PlanCalls {
  std::int64_t bounds = 0, time = 0, evaluate = 0;
  std::int64_t found = 0; // answers of evaluate() that fit
};

/// Answers from a table.
class FormulaCosts final : public PlanEvaluator {
 public:
  struct Options {
    std::uint64_t limit = UINT64_MAX;
    Refused refused = Refused::never; // every second plan, beginning with the fastest; all, if `refuses_all`
    bool refuses_all = false;
    std::function<bool(const PlanCalls&)> stop = {}; // asked after each call; may be empty
  };

  FormulaCosts(const PlanTable& table, Options options);

  const PlanSpace& space() const override { return table_.space(); }
  std::optional<PlanBounds> bounds(const TrainingPlan& plan) override;
  std::optional<PlanTime> time(const TrainingPlan& plan) override;
  std::optional<PlanEvaluation> evaluate(const TrainingPlan& plan) override;
  std::uint64_t memory_limit() const override { return options_.limit; }
  bool is_interrupted() override { return stopped_; }

  const PlanTable& table() const { return table_; }
  const Options& options() const { return options_; }
  const PlanCalls& calls() const { return calls_; }
  /// Calls after is_interrupted() has become true.
  const PlanCalls& late_calls() const { return late_; }
  /// The last plan that it was asked for and that is not in the space.
  const std::optional<TrainingPlan>& outside() const { return outside_; }
  bool fits(std::size_t row) const { return table_.rows()[row].bytes <= options_.limit; }
  bool is_refused(std::size_t row) const;

 private:
  /// Counts a call, and returns the row of its plan. Throws Error for a plan that is not in the space.
  std::size_t count(std::int64_t PlanCalls::*function, const TrainingPlan& plan);
  void ask_for_stop();

  const PlanTable& table_;
  const Options options_;
  PlanCalls calls_, late_;
  std::optional<TrainingPlan> outside_;
  bool stopped_ = false;
};

/// "p = 2, t = 1, d = 4, v = 1, b = 2, schedule 0, shard 1, recompute full, sequence"
std::string plan_text(const TrainingPlan& plan);

} // namespace triax::conformance
